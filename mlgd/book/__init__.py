"""What the pages are made of: checks, the ledger, pieces of pages, figures."""
