// The explorer: predicted prices as sliders move. The formulas come from mlgd.formulas (sympy prints them into the page);
// what stands here is the bookkeeping of mlgd.plan: whole steps, whole levels, the clamp, what is evaluated.
(() => {
  const F = () => window.mlgdFormulas;

  function scale(gamma, sigma, delta) {
    if (gamma > 2) return F().scaleHTMC({ gamma, sigma, delta });
    if (gamma < 2) return F().scaleETMC({ gamma, sigma });
    const n = Math.max(Math.ceil(Math.log2(sigma / (3 * delta))), 0);
    return n === 0 ? Infinity : F().scaleMC({ n, sigma });
  }

  // the levels down to accuracy delta: probabilities, prices, and the mean price of each in a call
  function call(P, delta, sigma) {
    const finest = Math.max(P.first, Math.ceil(-Math.log2(delta) - 1e-9));
    const levels = [];
    for (let k = P.first; k <= finest; k++) levels.push({ k, price: (P.c * 2 ** k) ** P.gamma, p: 1, share: 0 });
    if (sigma > 0 && levels.length > 1) {
      const C = scale(P.gamma, sigma, 2 ** -finest);
      levels.slice(1).forEach((l) => (l.p = Math.min(C * 2 ** (-l.k * (1 + P.gamma / 2)), 1)));
    }
    let m = 0;
    while (m < levels.length && levels[m].p === 1) m++;
    levels[m - 1].share = levels[m - 1].price;
    for (let i = m; i < levels.length; i++) {
      const after = i + 1 < levels.length ? levels[i + 1].p : 0;
      levels[i].share = (1 - (1 - levels[i].p) * (1 - after)) * levels[i].price;
    }
    return { levels, cost: levels.reduce((s, l) => s + l.share, 0) };
  }

  function stages(P, eps, method) {
    const eta = Math.min(1 / (4 * P.beta), P.d0 ** 2 / eps);
    if (method === "accelerated") {
      const out = [];
      for (let d0 = P.d0; ; d0 /= Math.SQRT2) {
        const target = P.mu ? F().stageTarget({ mu: P.mu, d0 }) : 0;
        const goal = target <= eps ? eps : target;
        const T = Math.max(1, Math.ceil(F().similarT({ d0, eta, eps: goal }) - 1e-9));
        const delta = F().similarDelta({ T, d0, eta });
        out.push({ steps: T, delta, sigma: Math.sqrt(F().similarSigma2({ T, d0, delta, eta })) });
        if (goal === eps) return out;
      }
    }
    if (method === "scheduled") {
      const grow = 1 / (1 - (eta * P.mu) / 2);
      const steps = Math.max(1, Math.ceil(Math.log1p((2 * P.mu * P.d0 ** 2) / eps) / Math.log(grow) - 1e-9));
      const block = Math.max(1, Math.floor((2 * Math.log(2)) / Math.log(grow)));
      const blocks = Math.floor((steps - 1) / block);
      let mass = 0, injection = 0;
      for (let r = 1; r <= steps; r++) {
        const w = grow ** -(r - 1);
        mass += w;
        injection += w * 2 ** Math.floor((r - 1) / block);
      }
      injection /= mass;
      const delta = Math.sqrt((3 * eps * P.mu) / (16 * injection * (1 + eta * P.mu)));
      const sigma = Math.sqrt((3 * eps) / (8 * injection * eta));
      const out = [];
      for (let b = blocks; b >= 0; b--) {
        const size = b === blocks ? steps - blocks * block : block;
        out.push({ steps: size, delta: delta * 2 ** (b / 2), sigma: sigma * 2 ** (b / 2) });
      }
      return out;
    }
    const kind = P.mu > 0 && eps <= P.mu * P.d0 ** 2 ? "strong" : "convex";
    const known = { d0: P.d0, eta, eps, mu: P.mu };
    const sigma = method === "fixed" ? 0 : Math.sqrt(F()[kind + "Sigma2"](known));
    return [{ steps: Math.ceil(F()[kind + "T"](known) - 1e-9), delta: F()[kind + "Delta"](known), sigma }];
  }

  function compare(P, eps) {
    const methods = ["multilevel", "fixed", "accelerated", ...(P.mu > 0 ? ["scheduled"] : [])];
    return methods
      .map((method) => {
        const parts = stages(P, eps, method);
        const cost = parts.reduce((s, x) => s + x.steps * call(P, x.delta, x.sigma).cost, 0);
        return { method, cost, steps: parts.reduce((s, x) => s + x.steps, 0), last: parts[parts.length - 1] };
      })
      .sort((a, b) => a.cost - b.cost);
  }
  window.mlgdExplorer = { compare, call };

  const SLIDERS = [
    ["gamma", "rate γ", 0.5, 6, 0.1, 3, (x) => x],
    ["kappa", "conditioning κ (largest: merely convex)", 0, 5, 0.1, 2, (x) => (x >= 5 ? Infinity : 10 ** x)],
    ["eps", "target ε", -5, 0, 0.1, -2, (x) => 10 ** x],
    ["d0", "distance d₀", -1, 2, 0.1, 0, (x) => 10 ** x],
    ["first", "coarsest level", -3, 6, 1, 1, (x) => x],
  ];
  const short = (x) => (x === Infinity ? "∞" : Number(x.toPrecision(3)).toString());
  const bar = (share) => `<span class="mlgd-bar" style="width:${(100 * share).toFixed(1)}%"></span>`;

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("mlgd-explorer");
    if (!root || !F()) return;
    const form = document.createElement("form");
    const inputs = {};
    for (const [name, label, min, max, step, start, map] of SLIDERS) {
      const row = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "range", min, max, step, value: start, name });
      const shown = document.createElement("output");
      row.append(`${label} `, input, shown);
      form.append(row);
      inputs[name] = { value: () => map(Number(input.value)), show: (t) => (shown.textContent = t) };
      input.addEventListener("input", draw);
    }
    const out = document.createElement("div");
    out.setAttribute("aria-live", "polite");
    root.replaceChildren(form, out);
    function draw() {
      const v = Object.fromEntries(Object.entries(inputs).map(([k, i]) => [k, i.value()]));
      Object.entries(inputs).forEach(([k, i]) => i.show(short(v[k])));
      const P = { beta: 1, c: 1, d0: v.d0, gamma: v.gamma, first: v.first, mu: v.kappa === Infinity ? 0 : 1 / v.kappa };
      const ranked = compare(P, v.eps);
      const logs = ranked.map((r) => Math.log10(r.cost));
      const low = Math.min(...logs) - 0.5, high = Math.max(...logs);
      const prices = ranked
        .map((r, i) => `<tr data-method="${r.method}" data-cost="${r.cost.toPrecision(12)}"><th>${r.method}</th>` +
          `<td>${r.cost.toExponential(2)}</td><td>${r.steps}</td><td class="mlgd-bars">${bar((logs[i] - low) / (high - low))}</td></tr>`)
        .join("");
      const plain = ranked.find((r) => r.method === "multilevel");
      const bill = call(P, plain.last.delta, plain.last.sigma);
      const split = bill.levels
        .map((l) => `<tr><th>${l.k}</th><td>${short(l.p)}</td><td class="mlgd-bars">${bar(l.p)}</td>` +
          `<td class="mlgd-bars">${bar(l.share / bill.cost)}</td></tr>`)
        .join("");
      out.innerHTML =
        `<p><b>${ranked[0].method}</b> is cheapest.</p><table><thead><tr><th>method</th><th>price</th><th>steps</th>` +
        `<th>price, log scale</th></tr></thead><tbody>${prices}</tbody></table>` +
        `<table><thead><tr><th>level</th><th colspan="2">probability in multilevel descent</th><th>share of the bill</th></tr></thead>` +
        `<tbody>${split}</tbody></table>`;
    }
    draw();
  });
})();
