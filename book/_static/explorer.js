// The explorer: prices of four methods with a proof and the lower bound as sliders move, and one verdict.
// Its formulas and its tree are printed into the page by a cell; here stands the bookkeeping of mlgd.plan.
(() => {
  const F = () => window.mlgdFormulas, up = (x) => Math.max(1, Math.ceil(x - 1e-9));

  // the levels down to accuracy delta: the mean price of a call
  function call(P, delta, sigma) {
    const finest = Math.max(P.first, Math.ceil(-Math.log2(delta) - 1e-9)), levels = [];
    for (let k = P.first; k <= finest; k++) levels.push({ price: (P.c * 2 ** k) ** P.gamma, p: 1 });
    if (sigma > 0) {
      const n = Math.max(Math.ceil(Math.log2(sigma / 3) + finest), 0);
      const kind = P.gamma > 2 ? "HTMC" : P.gamma < 2 ? "ETMC" : "MC";
      const C = kind === "MC" && !n ? Infinity : F()["scale" + kind]({ ...P, sigma, delta: 2 ** -finest, n });
      levels.forEach((l, i) => i && (l.p = Math.min(C * 2 ** (-(P.first + i) * (1 + P.gamma / 2)), 1)));
    }
    const sure = levels.filter((l) => l.p === 1).length, p = (i) => (i < levels.length ? levels[i].p : 0);
    const share = (l, i) => (i < sure ? i === sure - 1 : 1 - (1 - l.p) * (1 - p(i + 1))) * l.price;
    return levels.reduce((sum, l, i) => sum + share(l, i), 0);
  }

  function stages(P, eps, method) {
    const eta = Math.min(1 / (4 * P.beta), P.d0 ** 2 / eps), out = [];
    if (method === "accelerated") {
      for (let d0 = P.d0; ; d0 /= Math.SQRT2) {
        const target = P.mu ? F().stageTarget({ mu: P.mu, d0 }) : 0, goal = target <= eps ? eps : target;
        const T = up(F().similarT({ d0, eta, eps: goal })), delta = F().similarDelta({ T, d0, eta });
        out.push({ steps: T, delta, sigma: Math.sqrt(F().similarSigma2({ T, d0, delta, eta })) });
        if (goal === eps) return out;
      }
    }
    if (method === "scheduled") {
      const grow = -Math.log1p((-eta * P.mu) / 2);
      const steps = up(Math.log1p((2 * P.mu * P.d0 ** 2) / eps) / grow);
      const block = Math.max(1, Math.floor((2 * Math.log(2)) / grow)), blocks = Math.floor((steps - 1) / block);
      let mass = 0, injection = 0;
      for (let b = blocks; b >= 0; b--) {
        const size = b === blocks ? steps - blocks * block : block;
        const part = (Math.exp(-b * block * grow) * Math.expm1(-size * grow)) / Math.expm1(-grow);
        [mass, injection] = [mass + part, injection + part * 2 ** b];
        out.push({ steps: size, delta: 2 ** (b / 2), sigma: 2 ** (b / 2) });
      }
      const share = (3 * eps * mass) / (8 * injection), sigma = Math.sqrt(share / eta);
      const delta = Math.sqrt((share * P.mu) / (2 * (1 + eta * P.mu)));
      return out.map((s) => ({ steps: s.steps, delta: delta * s.delta, sigma: sigma * s.sigma }));
    }
    const kind = P.mu > 0 && eps <= P.mu * P.d0 ** 2 ? "strong" : "convex";
    const known = { ...P, eta, eps };
    const sigma = method === "fixed" ? 0 : Math.sqrt(F()[kind + "Sigma2"](known));
    return [{ steps: up(F()[kind + "T"](known)), delta: F()[kind + "Delta"](known), sigma }];
  }

  function compare(P, eps) {
    const methods = ["multilevel", "fixed", "accelerated", ...(P.mu > 0 ? ["scheduled"] : [])];
    const priced = methods.map((method) => ({ method, cost: stages(P, eps, method)
      .reduce((sum, s) => sum + s.steps * call(P, s.delta, s.sigma), 0) }));
    return priced.sort((a, b) => a.cost - b.cost);
  }

  // for a larger target the convex bound holds too: its hard instance has curvature 8 eps/d0^2 >= mu
  function bound(P, eps) {
    const flat = (8 * eps) / P.d0 ** 2;
    return flat > P.beta ? NaN : F()[flat <= P.mu ? "lowerStrong" : "lowerConvex"]({ ...P, eps });
  }

  // the leaf of the tree; what it asks follows from the level that the cheapest steps need
  function advise(P, eps, repeats) {
    const levels = Math.max(0, Math.ceil(-Math.log2(stages(P, eps, "fixed")[0].delta) - 1e-9) - P.first);
    const facts = { expensive: 2 ** (P.gamma * levels) >= 10, repeats, loose: levels <= 2, known: true };
    let node = window.mlgdTree;
    while (node.ask) node = facts[node.ask] ? node.yes : node.no;
    return node;
  }
  window.mlgdExplorer = { compare, bound, advise };

  const SLIDERS = [
    ["gamma", "rate γ", 0.5, 8, 0.1, 3, (x) => x],
    ["kappa", "condition number κ (∞: convex only)", 0, 6.1, 0.1, 2, (x) => (x > 6.05 ? Infinity : 10 ** x)],
    ["eps", "target ε (finer to the right)", 0, 5, 0.1, 2, (x) => 10 ** -x],
    ["first", "coarsest level", -3, 6, 1, 1, (x) => x],
  ];
  const LOOK = { multilevel: ["#0072B2", ""], fixed: ["#6B6B6B", "6 3"], accelerated: ["#D55E00", "2 2"],
    scheduled: ["#009E73", "8 2 2 2"], "lower bound": ["currentColor", "1 4"] };
  const short = (x) => (x === Infinity ? "∞" : Number(x.toPrecision(3)).toString());
  // numbers as the book writes them: 0.007, 320, 3.2·10⁴, 10⁻⁵
  const power = (d) => "10" + String(d).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const written = (x) => {
    const [digits, d] = x.toExponential(1).split("e");
    return d > -5 && d < 4 ? Number(x.toPrecision(2)).toString() : `${digits}·${power(Number(d))}`;
  };

  // prices over the target, one curve per method; the reader's target, and the cheapest method on it
  function curves(P, eps, width) {
    const left = 62, H = 300, targets = [...Array(21).keys()].map((i) => 10 ** (-i / 4)), best = compare(P, eps)[0];
    const rows = targets.map((t) => [...compare(P, t), { method: "lower bound", cost: bound(P, t) }]);
    const logs = rows.flat().map((r) => Math.log10(r.cost)).filter(Number.isFinite);
    const low = Math.floor(Math.min(...logs)), high = Math.ceil(Math.max(...logs));
    const x = (t) => left - (Math.log10(t) / 5) * (width - left - 12);
    const y = (c) => 10 + ((high - Math.log10(c)) / (high - low)) * (H - 60);
    let svg = `<text x="${(left + width) / 2}" y="${H - 16}" text-anchor="middle">target ε, finer to the right</text>
      <text transform="translate(12 ${H / 2 - 20}) rotate(-90)" text-anchor="middle">price, in gradients of accuracy one</text>`;
    for (let d = low; d <= high; d += Math.ceil((high - low) / 6)) svg += `<path d="M${left} ${y(10 ** d)}H${width - 12}"
      stroke="currentColor" stroke-opacity="0.2"/><text x="${left - 6}" y="${y(10 ** d) + 4}" text-anchor="end">${d ? power(d) : 1}</text>`;
    for (let d = 0; d <= 5; d++) svg += `<text x="${x(10 ** -d)}" y="${H - 33}" text-anchor="middle">${d ? power(-d) : 1}</text>`;
    for (const m of Object.keys(LOOK)) {
      const points = rows.map((row, i) => [targets[i], row.find((r) => r.method === m)?.cost]).filter(([, c]) => c > 0);
      svg += `<polyline data-curve="${m}" points="${points.map(([t, c]) => `${x(t).toFixed(1)},${y(c).toFixed(1)}`).join(" ")}"
        fill="none" stroke="${LOOK[m][0]}" stroke-width="2" stroke-dasharray="${LOOK[m][1]}"/>`;
    }
    svg += `<path d="M${x(eps)} 10V${H - 50}" stroke="currentColor" stroke-dasharray="3 3"/><circle data-winner="${best.method}"
      cx="${x(eps)}" cy="${y(best.cost)}" r="6" fill="${LOOK[best.method][0]}" stroke="currentColor"/>`;
    return `<svg class="mlgd-curves" role="img" aria-label="Prices over the target; cheapest: ${best.method}" viewBox="0 0 ${width} ${H}" width="100%"
      style="max-width:${width}px;font-size:11px" fill="currentColor">${svg}</svg>`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("mlgd-explorer");
    if (!root) return;
    root.innerHTML = "<form>" + SLIDERS.map(([name, label, min, max, step, value]) => `<label>${label} <input type="range"
      name="${name}" min="${min}" max="${max}" step="${step}" value="${value}"><output></output></label>`).join("") +
      '<label>errors repeat at nearby points <input type="checkbox" name="repeats"></label></form><div aria-live="polite"></div>';
    const form = root.querySelector("form");
    function draw() {
      const v = {};
      for (const [name, , , , , , map] of SLIDERS)
        form[name].nextElementSibling.textContent = short((v[name] = map(Number(form[name].value))));
      const P = { beta: 1, c: 1, d0: 1, gamma: v.gamma, first: v.first, mu: v.kappa === Infinity ? 0 : 1 / v.kappa };
      const leaf = advise(P, v.eps, form.repeats.checked), width = Math.max(300, Math.min(640, root.clientWidth));
      const words = leaf.words.replace(/`([^`]*)`/g, "<code>$1</code>");
      const rows = [...compare(P, v.eps), { method: "lower bound", cost: bound(P, v.eps) }].map(({ method, cost }) =>
        `<tr data-method="${method}" data-cost="${cost.toPrecision(12)}"><td><svg width="40" height="8"><path d="M0 4H40"
        stroke="${LOOK[method][0]}" stroke-width="3" stroke-dasharray="${LOOK[method][1]}"/></svg></td><th>${method}</th>
        <td>${Number.isNaN(cost) ? "none for so large a target" : written(cost)}</td></tr>`);
      root.lastElementChild.innerHTML = `<p data-leaf="${leaf.leaf}"><b>Use ${leaf.leaf}.</b> ${words}</p>` +
        curves(P, v.eps, width) + `<table><thead><tr><th></th><th>with a proof</th><th>price</th></tr></thead>${rows.join("")}</table>`;
    }
    form.addEventListener("input", draw);
    draw();
  });
})();
