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
      let mass = 0, injection = 0; // sums of grow^-(r-1) over the steps r, block by block
      for (let b = 0; b <= blocks; b++) {
        const size = b === blocks ? steps - blocks * block : block;
        const part = (grow ** (-b * block) * -Math.expm1(-size * Math.log(grow))) / -Math.expm1(-Math.log(grow));
        mass += part;
        injection += part * 2 ** b;
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
  // --- drawings: plain SVG, no library ---
  const COLOURS = { multilevel: "#0072B2", fixed: "#6B6B6B", accelerated: "#D55E00", scheduled: "#009E73" };
  const DASHES = { multilevel: "", fixed: "6 3", accelerated: "2 2", scheduled: "8 2 2 2" };

  // prices against the target, one curve per method; the target where the reader stands, and the winner on it
  function curves(P, eps) {
    const W = 560, H = 300, left = 60, bottom = 40, targets = [];
    for (let e = 0; e >= -5.001; e -= 0.25) targets.push(10 ** e);
    const table = targets.map((t) => compare(P, t));
    const here = compare(P, eps), all = table.flat().map((r) => Math.log10(r.cost));
    const low = Math.floor(Math.min(...all)), high = Math.ceil(Math.max(...all));
    const x = (t) => left + ((Math.log10(t) + 5) / 5) * (W - left - 10);
    const y = (c) => 10 + ((high - Math.log10(c)) / (high - low)) * (H - bottom - 10);
    const line = (m) => table.map((rank, i) => [targets[i], rank.find((r) => r.method === m).cost]).map(([t, c]) => `${x(t).toFixed(1)},${y(c).toFixed(1)}`).join(" ");
    const methods = here.map((r) => r.method);
    const step = Math.max(1, Math.ceil((high - low) / 6));
    let svg = "";
    for (let d = low; d <= high; d += step) svg += `<line x1="${left}" x2="${W - 10}" y1="${y(10 ** d)}" y2="${y(10 ** d)}" stroke="#ccc"/><text x="${left - 6}" y="${y(10 ** d) + 4}" text-anchor="end">1e${d}</text>`;
    for (let d = -5; d <= 0; d++) svg += `<text x="${x(10 ** d)}" y="${H - bottom + 18}" text-anchor="middle">1e${d}</text>`;
    for (const m of methods) svg += `<polyline data-curve="${m}" points="${line(m)}" fill="none" stroke="${COLOURS[m]}" stroke-width="2" stroke-dasharray="${DASHES[m]}"/>`;
    svg += `<line x1="${x(eps)}" x2="${x(eps)}" y1="10" y2="${H - bottom}" stroke="#1A1A1A" stroke-dasharray="3 3"/>`;
    svg += `<circle data-winner="${here[0].method}" cx="${x(eps).toFixed(2)}" cy="${y(here[0].cost).toFixed(2)}" r="6" fill="${COLOURS[here[0].method]}" stroke="white"/>`;
    svg += methods.map((m, i) => `<line x1="${left + 120 * i}" x2="${left + 24 + 120 * i}" y1="${H - 6}" y2="${H - 6}" stroke="${COLOURS[m]}" stroke-width="2" stroke-dasharray="${DASHES[m]}"/><text x="${left + 28 + 120 * i}" y="${H - 2}">${m}</text>`).join("");
    const said = `Prices against the target. At target ${short(eps)} the cheapest is ${here[0].method} at ${here[0].cost.toExponential(1)}.`;
    return `<svg class="mlgd-curves" role="img" aria-label="${said}" viewBox="0 0 ${W} ${H}" width="100%" style="max-width:${W}px;font-size:11px"><title>${said}</title>${svg}</svg>`;
  }

  // the map of the chapter on rivals (fresh errors, tuned in hindsight), with a dot where the reader stands
  function chart(P, eps, kappa) {
    const M = window.mlgdMap;
    if (!M) return "";
    const target = M.targets.reduce((a, b) => (Math.abs(Math.log(b / eps)) < Math.abs(Math.log(a / eps)) ? b : a));
    const side = 44, left = 50, cells = M.cells.filter((c) => c[0] === target);
    const W = left + side * M.kappas.length + 10, H = side * 0.6 * M.gammas.length + 50;
    let svg = "";
    for (const [, k, g, winner, letter, colour, price] of cells) {
      const i = M.kappas.indexOf(k), j = M.gammas.length - 1 - M.gammas.indexOf(g);
      svg += `<rect x="${left + i * side}" y="${10 + j * side * 0.6}" width="${side - 1}" height="${side * 0.6 - 1}" fill="${colour}" fill-opacity="0.55"><title>gamma ${g}, kappa ${k}: ${winner}, ${price} gradients</title></rect>`;
      svg += `<text x="${left + (i + 0.5) * side}" y="${10 + (j + 0.65) * side * 0.6}" text-anchor="middle">${letter} ${price}</text>`;
    }
    M.kappas.forEach((k, i) => (svg += `<text x="${left + (i + 0.5) * side}" y="${H - 24}" text-anchor="middle">1e${Math.round(Math.log10(k))}</text>`));
    M.gammas.forEach((g, i) => (svg += `<text x="${left - 6}" y="${10 + (M.gammas.length - 0.35 - i) * side * 0.6}" text-anchor="end">${g}</text>`));
    const legend = [...new Set(cells.map((c) => `${c[4]} ${c[3].split(",")[0].split(" ")[0]}`))].join(", ");
    const place = (list, v, f) => { // between the cells' centres, and at the edge beyond them
      for (let i = 0; i + 1 < list.length; i++) if (v <= list[i + 1]) return Math.max(0, i + (f(v) - f(list[i])) / (f(list[i + 1]) - f(list[i])));
      return list.length - 1;
    };
    const cx = left + (place(M.kappas, kappa, Math.log) + 0.5) * side;
    const cy = 10 + (M.gammas.length - 0.5 - place(M.gammas, P.gamma, (v) => v)) * side * 0.6;
    svg += `<circle data-here="1" cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="7" fill="none" stroke="#1A1A1A" stroke-width="3"/>`;
    const said = `Map of winners in hindsight for fresh errors at target ${short(target)}, gamma upwards, kappa to the right; the ring is where the sliders stand.`;
    return `<svg class="mlgd-map" role="img" aria-label="${said}" viewBox="0 0 ${W} ${H}" width="100%" style="max-width:${W}px;font-size:9px"><title>${said}</title>${svg}<text x="${left}" y="${H - 6}">conditioning to the right, rate γ upwards; target ${short(target)}; ${legend}</text></svg>`;
  }

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
        `<p><b>${ranked[0].method}</b> is the cheapest of the paper's methods, with proved constants.</p>${curves(P, v.eps)}` +
        `${chart(P, v.eps, v.kappa)}<table><thead><tr><th>method</th><th>price</th><th>steps</th>` +
        `<th>price, log scale</th></tr></thead><tbody>${prices}</tbody></table>` +
        `<table><thead><tr><th>level</th><th colspan="2">probability in multilevel descent</th><th>share of the bill</th></tr></thead>` +
        `<tbody>${split}</tbody></table>`;
    }
    draw();
  });
})();
