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
  const box = document.createElement("form");
  box.className = "mlgd-filter";
  box.setAttribute("role", "search");
  box.addEventListener("submit", (e) => e.preventDefault());
  const field = (label, control) => {
    const l = document.createElement("label");
    l.append(label + " ", control);
    box.append(l);
    control.addEventListener("input", apply);
    return control;
  };
  const choice = (key) => {
    const s = document.createElement("select");
    s.append(new Option("all", ""));
    [...new Set(rows.map((r) => r.dataset[key]))].sort().forEach((v) => s.append(new Option(v, v)));
    return field(key, s);
  };
  const chosen = { verdict: choice("verdict"), evidence: choice("evidence") };
  const words = field("search", Object.assign(document.createElement("input"), { type: "search" }));
  const count = document.createElement("output");
  count.setAttribute("aria-live", "polite");
  box.append(count);
  (tables[0].closest("section section") || tables[0]).before(box);
  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((r, i) => {
      const fits =
        Object.entries(chosen).every(([k, s]) => !s.value || r.dataset[k] === s.value) &&
        wanted.every((w) => texts[i].includes(w));
      r.hidden = !fits;
      shown += fits;
    });
    const asked = wanted.length || Object.values(chosen).some((s) => s.value);
    if (asked) tables.forEach((t) => (t.closest("details").open = [...t.tBodies[0].rows].some((r) => !r.hidden)));
    count.textContent = `${shown} of ${rows.length} rows`;
  }
  apply();
});
