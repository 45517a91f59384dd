// Folds are closed where scripts run, and opened for a link that leads into them and for printing.
document.addEventListener("DOMContentLoaded", () => {
  const folds = document.querySelectorAll("details.mlgd-fold");
  const reveal = () => {
    const goal = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!goal || !goal.closest("details.mlgd-fold, .mlgd-check")) return;
    goal.querySelectorAll("details.mlgd-fold").forEach((fold) => (fold.open = true));
    for (let fold = goal.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    goal.scrollIntoView();
  };
  folds.forEach((fold) => (fold.open = false));
  // A formula on a line of its own needs no full stop after it.
  document.querySelectorAll(".mlgd-display").forEach((box) => {
    const after = box.nextSibling;
    if (after && after.nodeType === 3) after.data = after.data.replace(/^[.,]/, "");
  });
  // Two panels are shown as halves that book.css stacks on a phone.
  document.querySelectorAll("img.mlgd-panels").forEach((img) => {
    const half = document.createElement("div");
    half.className = "mlgd-half";
    img.replaceWith(half);
    half.append(img);
    half.after(half.cloneNode(true));
    half.nextSibling.firstChild.alt = "";
  });
  reveal();
  window.addEventListener("hashchange", reveal);
  window.addEventListener("beforeprint", () => folds.forEach((fold) => (fold.open = true)));
});

// Filters for the ledger's tables. Without this script the tables are simply all there.
document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("table.mlgd-ledger")];
  if (!tables.length) return;
  const rows = tables.flatMap((t) => [...t.tBodies[0].rows]);
  const texts = rows.map((r) => r.textContent.toLowerCase());
  const verdicts = [...new Set(rows.map((r) => r.dataset.verdict))].sort();
  const box = document.createElement("form");
  box.className = "mlgd-filter";
  box.innerHTML = `<label>verdict <select><option value="">all</option>
    ${verdicts.map((v) => `<option>${v}</option>`).join("")}</select></label>
    <label>search <input type="search"></label><output aria-live="polite"></output>`;
  const [verdict, words, count] = ["select", "input", "output"].map((n) => box.querySelector(n));
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (r, i) => (!verdict.value || r.dataset.verdict === verdict.value) && wanted.every((w) => texts[i].includes(w));
    rows.forEach((r, i) => (r.hidden = !fits(r, i)));
    if (wanted.length || verdict.value)
      tables.forEach((t) => (t.closest("details").open = [...t.tBodies[0].rows].some((r) => !r.hidden)));
    count.textContent = `${rows.filter((r) => !r.hidden).length} of ${rows.length} rows`;
  };
  box.addEventListener("submit", (e) => e.preventDefault());
  box.addEventListener("input", apply);
  (tables[0].closest("section section") || tables[0]).before(box);
  apply();
});
