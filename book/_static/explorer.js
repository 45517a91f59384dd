// The explorer: predicted prices as sliders move. The formulas come from mlgd.formulas (sympy prints them into the page);
// what stands here is the bookkeeping of mlgd.plan: whole steps, whole levels, the clamp, what is evaluated.
// The second chart reads a table that mlgd.compare printed, and goes along straight lines of logarithms between its entries.
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

  // where v lies on an axis: [index, weight] of its neighbours; at the edge beyond it
  function between(axis, v, f) {
    let i = 0;
    while (i + 2 < axis.length && v > axis[i + 1]) i++;
    const w = Math.min(1, Math.max(0, (f(v) - f(axis[i])) / (f(axis[i + 1]) - f(axis[i]))));
    return [[i, 1 - w], [i + 1, w]].filter(([, weight]) => weight > 1e-9);
  }

  // what compare expects of every method on the instance of the table, cheapest first; methods without a plan are left out
  function expected(gamma, kappa, eps) {
    const M = window.mlgdPrices, rows = M.gammas.length;
    const descending = [...M.targets].reverse(), last = M.targets.length - 1;
    const corners = [];
    for (const [i, u] of between(M.kappas, kappa, Math.log)) for (const [j, v] of between(M.gammas, gamma, (x) => x))
      for (const [k, w] of between(descending, eps, Math.log)) corners.push([M.prices[i * rows + j][last - k], u * v * w]);
    return M.methods
      .map((method, m) => ({ method, cost: corners.every(([p]) => p[m] !== null) ? Math.exp(corners.reduce((s, [p, w]) => s + w * Math.log(p[m]), 0)) : NaN }))
      .filter((r) => !Number.isNaN(r.cost))
      .sort((a, b) => a.cost - b.cost);
  }
  window.mlgdExplorer = { compare, call, expected };


  const SLIDERS = [
    ["gamma", "rate γ", 0.5, 8, 0.1, 3, (x) => x],
    ["kappa", "conditioning κ (largest: merely convex)", 0, 6.1, 0.1, 2, (x) => (x > 6.05 ? Infinity : 10 ** x)],
    ["eps", "target ε", -5, 0, 0.1, -2, (x) => 10 ** x],
    ["d0", "distance d₀", -1, 2, 0.1, 0, (x) => 10 ** x],
    ["first", "coarsest level", -3, 6, 1, 1, (x) => x],
  ];
  // --- drawings: plain SVG in the page's own text colour, no library ---
  const LOOK = {
    multilevel: ["#0072B2", ""], fixed: ["#6B6B6B", "6 3"], accelerated: ["#D55E00", "2 2"], scheduled: ["#009E73", "8 2 2 2"],
    refine: ["#E69F00", "4 2"], anchored: ["#CC79A7", "10 3"], corrected: ["#009E73", "1 3"],
  };
  const stroke = (m) => `stroke="${LOOK[m][0]}" stroke-width="2" stroke-dasharray="${LOOK[m][1]}"`;

  // drawings are as wide as the page allows, so that letters keep their size on a telephone
  const room = () => Math.max(300, Math.min(560, document.getElementById("mlgd-explorer").clientWidth));

  // prices against the target, one curve per method; the target where the reader stands, and the winner on it
  function curves(name, title, at, eps) {
    const W = room(), left = 48, targets = [];
    for (let e = 0; e >= -5.001; e -= 0.25) targets.push(10 ** e);
    const table = targets.map(at), here = at(eps), all = table.flat().map((r) => Math.log10(r.cost));
    if (!here.length) return "";
    const methods = [...new Set(table.flat().map((r) => r.method))].sort(), abreast = Math.floor(W / 108);
    const bottom = 44 + 16 * Math.ceil(methods.length / abreast), H = 240 + bottom;
    const low = Math.floor(Math.min(...all)), high = Math.max(low + 1, Math.ceil(Math.max(...all)));
    const x = (t) => left + ((Math.log10(t) + 5) / 5) * (W - left - 10);
    const y = (c) => 10 + ((high - Math.log10(c)) / (high - low)) * (H - bottom - 10);
    const line = (m) => table.map((rank, i) => [targets[i], rank.find((r) => r.method === m)]).filter(([, r]) => r).map(([t, r]) => `${x(t).toFixed(1)},${y(r.cost).toFixed(1)}`).join(" ");
    const step = Math.max(1, Math.ceil((high - low) / 6));
    let svg = "";
    for (let d = low; d <= high; d += step) svg += `<line x1="${left}" x2="${W - 10}" y1="${y(10 ** d)}" y2="${y(10 ** d)}" stroke="currentColor" stroke-opacity="0.2"/><text x="${left - 6}" y="${y(10 ** d) + 4}" text-anchor="end">1e${d}</text>`;
    for (let d = -5; d <= 0; d++) svg += `<text x="${x(10 ** d)}" y="${H - bottom + 16}" text-anchor="middle">1e${d}</text>`;
    svg += `<text x="${(left + W) / 2}" y="${H - bottom + 32}" text-anchor="middle">target</text>`;
    for (const m of methods) svg += `<polyline data-curve="${m}" points="${line(m)}" fill="none" ${stroke(m)}/>`;
    svg += `<line x1="${x(eps)}" x2="${x(eps)}" y1="10" y2="${H - bottom}" stroke="currentColor" stroke-dasharray="3 3"/>`;
    svg += `<circle data-winner="${here[0].method}" data-cost="${here[0].cost.toPrecision(12)}" cx="${x(eps).toFixed(2)}" cy="${y(here[0].cost).toFixed(2)}" r="6" fill="${LOOK[here[0].method][0]}" stroke="currentColor"/>`;
    const key = (m, i) => [8 + (i % abreast) * 108, H - bottom + 52 + 16 * Math.floor(i / abreast), m];
    svg += methods.map(key).map(([u, v, m]) => `<line x1="${u}" x2="${u + 24}" y1="${v - 4}" y2="${v - 4}" ${stroke(m)}/><text x="${u + 28}" y="${v}">${m}</text>`).join("");
    const said = `${title}: prices against the target. At target ${short(eps)} the cheapest is ${here[0].method} at ${here[0].cost.toExponential(1)}.`;
    return `<svg class="mlgd-curves" data-chart="${name}" role="img" aria-label="${said}" viewBox="0 0 ${W} ${H}" width="100%" style="max-width:${W}px;font-size:11px" fill="currentColor"><title>${said}</title>${svg}</svg>`;
  }

  // the map of the chapter on rivals, tuned in hindsight, with a ring where the reader stands
  function chart(gamma, kappa, eps, kind, single) {
    const M = window.mlgdMap;
    if (!M) return "";
    const target = M.targets.reduce((a, b) => (Math.abs(Math.log(b / eps)) < Math.abs(Math.log(a / eps)) ? b : a));
    const left = 30, wide = Math.min(60, (room() - left - 10) / M.kappas.length), tall = 26, cells = M.cells.filter((c) => c[0] === kind && c[1] === target);
    const W = left + wide * M.kappas.length + 10, H = tall * M.gammas.length + 46, rows = M.gammas.length;
    let svg = "";
    const seen = new Set();
    for (const c of cells) {
      const [, , k, g] = c, [name, letter, colour] = M.methods[c[single ? 6 : 4]], price = c[single ? 7 : 5];
      const i = M.kappas.indexOf(k), j = rows - 1 - M.gammas.indexOf(g);
      seen.add(`${letter}: ${name}`);
      svg += `<rect x="${left + i * wide}" y="${10 + j * tall}" width="${wide - 1}" height="${tall - 1}" fill="${colour}" fill-opacity="0.45"><title>gamma ${g}, kappa ${k}: ${name}, ${price} gradients</title></rect>`;
      svg += `<text x="${left + (i + 0.5) * wide}" y="${10 + (j + 0.65) * tall}" text-anchor="middle">${letter} ${price < 0.01 ? price.toExponential(0) : price}</text>`;
    }
    M.kappas.forEach((k, i) => (svg += `<text x="${left + (i + 0.5) * wide}" y="${H - 22}" text-anchor="middle">1e${Math.round(Math.log10(k))}</text>`));
    M.gammas.forEach((g, i) => (svg += `<text x="${left - 6}" y="${10 + (rows - 0.35 - i) * tall}" text-anchor="end">${g}</text>`));
    const place = (axis, v, f) => between(axis, v, f).reduce((s, [i, w]) => s + i * w, 0);
    const cx = left + (place(M.kappas, kappa, Math.log) + 0.5) * wide, cy = 10 + (rows - 0.5 - place(M.gammas, gamma, (v) => v)) * tall;
    svg += `<circle data-here="1" cx="${cx.toFixed(1)}" cy="${cy.toFixed(1)}" r="9" fill="none" stroke="currentColor" stroke-width="3"/>`;
    const near = (axis, v, f) => axis[Math.round(place(axis, v, f))];
    const at = cells.find((c) => c[2] === near(M.kappas, kappa, Math.log) && c[3] === near(M.gammas, gamma, (v) => v));
    const said = `Map of winners in hindsight, ${kind} errors, target ${short(target)} of the starting loss, ${single ? "single gradients only" : "all methods"}; rate upwards, conditioning to the right. Nearest to you: ${M.methods[at[single ? 6 : 4]][0]} at ${at[single ? 7 : 5]} gradients.`;
    return `<svg class="mlgd-map" role="img" aria-label="${said}" viewBox="0 0 ${W} ${H}" width="100%" style="max-width:${W}px;font-size:11px" fill="currentColor"><title>${said}</title>${svg}` +
      `<text x="${left}" y="${H - 6}">conditioning κ to the right, rate γ upwards; target ${short(target)}</text></svg><p>${[...seen].sort().join("; ")}. Numbers are prices in gradients.</p>`;
  }

  const short = (x) => (x === Infinity ? "∞" : Number(x.toPrecision(3)).toString());
  const bar = (share) => `<span class="mlgd-bar" style="width:${(100 * share).toFixed(1)}%"></span>`;
  const table = (head, rows) => `<table><thead><tr>${head.map((h) => `<th>${h}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("mlgd-explorer");
    if (!root || !F()) return;
    const form = document.createElement("form"), inputs = {};
    const field = (label, ...parts) => {
      const row = document.createElement("label");
      row.append(`${label} `, ...parts);
      form.append(row);
      parts[0].addEventListener("input", draw);
      return parts[0];
    };
    for (const [name, label, min, max, step, start, map] of SLIDERS) {
      const shown = document.createElement("output");
      const input = field(label, Object.assign(document.createElement("input"), { type: "range", min, max, step, value: start, name }), shown);
      inputs[name] = { value: () => map(Number(input.value)), show: (t) => (shown.textContent = t) };
    }
    const kind = field("errors on the map", Object.assign(document.createElement("select"), { name: "kind" }));
    for (const k of ["smooth", "fresh", "rounded"]) kind.append(new Option(k, k));
    const single = field("single gradients only", Object.assign(document.createElement("input"), { type: "checkbox", name: "single" }));
    const out = document.createElement("div");
    out.setAttribute("aria-live", "polite");
    root.replaceChildren(form, out);
    function draw() {
      const v = Object.fromEntries(Object.entries(inputs).map(([k, i]) => [k, i.value()]));
      Object.entries(inputs).forEach(([k, i]) => i.show(short(v[k])));
      const P = { beta: 1, c: 1, d0: v.d0, gamma: v.gamma, first: v.first, mu: v.kappa === Infinity ? 0 : 1 / v.kappa };
      const ranked = compare(P, v.eps), hoped = expected(v.gamma, v.kappa, v.eps);
      const logs = ranked.map((r) => Math.log10(r.cost));
      const low = Math.min(...logs) - 0.5, high = Math.max(...logs);
      const prices = ranked.map((r, i) => `<tr data-method="${r.method}" data-cost="${r.cost.toPrecision(12)}"><th>${r.method}</th>` +
        `<td>${r.cost.toExponential(2)}</td><td>${r.steps}</td><td class="mlgd-bars">${bar((logs[i] - low) / (high - low))}</td></tr>`);
      const guesses = hoped.map((r) => `<tr data-expected="${r.method}" data-cost="${r.cost.toPrecision(12)}"><th>${r.method}</th><td>${r.cost.toExponential(2)}</td><td>${short(r.cost / hoped[0].cost)}</td></tr>`);
      const plain = ranked.find((r) => r.method === "multilevel");
      const bill = call(P, plain.last.delta, plain.last.sigma);
      const split = bill.levels.map((l) => `<tr><th>${l.k}</th><td>${short(l.p)}</td><td class="mlgd-bars">${bar(l.p)}</td><td class="mlgd-bars">${bar(l.share / bill.cost)}</td></tr>`);
      const edge = (axis, x) => short(Math.min(Math.max(x, axis[0]), axis[axis.length - 1]));
      const T = window.mlgdPrices;
      out.innerHTML =
        `<h3>Proved</h3><p><b>${ranked[0].method}</b> is the cheapest of the paper's methods, with proved constants.</p>` +
        curves("proved", "With proved constants", (t) => compare(P, t), v.eps) + table(["method", "price", "steps", "price, log scale"], prices) +
        `<h3>Expected</h3><p><b>${hoped[0].method}</b> is the cheapest of all methods on the instance of the table, at γ = ${edge(T.gammas, v.gamma)}, κ = ${edge(T.kappas, v.kappa)}.</p>` +
        curves("expected", "Expected on an instance", (t) => expected(v.gamma, v.kappa, t), v.eps) + table(["method", "expected price", "over the cheapest"], guesses) +
        `<h3>In hindsight</h3>${chart(v.gamma, v.kappa, v.eps, kind.value, single.checked)}` +
        `<h3>Where the money goes</h3>${table(["level", "probability in multilevel descent", "", "share of the bill"], split)}`;
    }
    draw();
    window.addEventListener("resize", draw);
  });
})();
