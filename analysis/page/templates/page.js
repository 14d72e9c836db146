// What a reader can do with the page: point at things, choose a cell, sort, filter, zoom, switch
// between light and dark. The page reads without it. The state is in the address after #: the
// chosen cell (or the part of the page) first, then name=value for the rest.
"use strict";
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const make = (tag, props = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };
  const button = (text, label, onclick) => {
    const node = make("button", { type: "button", textContent: text, onclick });
    node.setAttribute("aria-label", label);
    return node;
  };
  const root = document.documentElement;

  // State
  let place, state;
  const decoded = (text) => {
    try { return decodeURIComponent(text); } catch { return text; } // a link that was cut
  };
  const read = () => {
    const pairs = location.hash.slice(1).split("&").map((pair) => pair.split("=").map(decoded));
    place = pairs.find((pair) => pair.length === 1)?.[0] ?? "";
    state = new Map(pairs.filter((pair) => pair.length === 2));
  };
  read();
  const keep = (name, value) => {
    if (name === "") place = value;
    else if (value) state.set(name, value);
    else state.delete(name);
    const parts = [...(place ? [place] : []), ...[...state].map(([k, v]) => `${k}=${encodeURIComponent(v)}`)];
    history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
  };

  // Light and dark
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = make("button", { type: "button", className: "theme" });
  const shown = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const setTheme = (to) => {
    if (to) root.dataset.theme = to;
    else delete root.dataset.theme;
    theme.textContent = shown() === "dark" ? "Light page" : "Dark page";
  };
  theme.onclick = () => {
    const other = shown() === "dark" ? "light" : "dark";
    const to = other === (dark.matches ? "dark" : "light") ? "" : other;
    setTheme(to);
    keep("theme", to);
  };
  dark.addEventListener("change", () => setTheme(root.dataset.theme));
  all(".tools")[0].append(theme);

  // One cell in every figure and table
  const anchors = new Set(all("tr[id][data-cell]").map((row) => row.id));
  const tagged = all("[data-cell]");
  for (const link of all("a.pt")) {
    link.dataset.cell = link.getAttribute("href").slice(1);
    tagged.push(link);
  }
  const choose = (cell, temporary) => {
    const its = tagged.filter((node) => cell && node.dataset.cell === cell);
    const panels = new Set(its.map((node) => node.closest(".panel")));
    const figures = new Set(its.map((node) => node.closest("figure")));
    figures.delete(null); // of rows of tables
    for (const node of tagged) {
      const own = node.dataset.cell === cell || panels.has(node);
      node.classList.toggle("on", own && !!cell);
      node.classList.toggle("far", !own && figures.has(node.closest("figure")));
    }
    if (!temporary && (cell || anchors.has(place))) keep("", cell);
  };
  const chosen = () => (anchors.has(place) ? place : "");
  document.addEventListener("click", (event) => {
    const point = event.target.closest("a.pt, tr[data-cell]");
    if (!point || getSelection().toString()) return;
    event.preventDefault();
    choose(point.dataset.cell === chosen() ? "" : point.dataset.cell);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hide();
      choose("");
    }
  });

  // A head count, from the legends
  for (const key of all(".key[data-h]")) {
    const figure = key.closest("figure");
    const mark = (h) => {
      for (const node of all(".pt, .lines path.head", figure)) {
        const own = node.classList.contains(`h${h}`);
        node.classList.toggle("far", !!h && !own);
      }
      if (!h) choose(chosen(), true);
    };
    key.onpointerenter = () => mark(key.dataset.h);
    key.onpointerleave = () => mark("");
  }

  // Words of the point nearest to the pointer, or in focus
  const tip = make("div", { className: "tip", hidden: true });
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const texts = new Map();
  for (const title of all("svg.plot title")) {
    const point = title.closest(".pt");
    texts.set(point, title.textContent);
    point.setAttribute("aria-label", title.textContent);
    if (point.localName !== "a") point.setAttribute("role", "img");
    title.remove(); // or the browser would show it beside ours
  }
  let at = null;
  const hide = () => {
    tip.hidden = true;
    at?.classList.remove("on");
    if (at) choose(chosen(), true);
    at = null;
  };
  const middle = (point) => {
    const box = (point.querySelector("use") ?? point).getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const show = (point) => {
    if (at === point) return;
    hide();
    at = point;
    tip.textContent = texts.get(point);
    tip.hidden = false;
    const [x, y] = middle(point);
    const left = Math.min(Math.max(x - tip.offsetWidth / 2, 8), root.clientWidth - tip.offsetWidth - 8);
    const above = y - tip.offsetHeight - 14;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 4 ? above : y + 16) + scrollY}px`;
    const cell = point.dataset.cell;
    if (cell && !chosen()) choose(cell, true);
    point.classList.add("on");
  };
  const near = (plot, event) => {
    let best = null;
    let reach = 28;
    for (const point of all(".pt:not(.out)", plot)) {
      if (!texts.has(point)) continue;
      const [x, y] = middle(point);
      const distance = Math.hypot(x - event.clientX, y - event.clientY);
      if (distance <= reach) [best, reach] = [point, distance];
    }
    return best;
  };
  for (const plot of all("svg.plot")) {
    plot.addEventListener("pointermove", (event) => {
      const point = near(plot, event);
      if (point) show(point);
      else hide();
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("focusin", (event) => show(event.target.closest(".pt")));
    plot.addEventListener("focusout", hide);
  }

  // The command that draws a figure as a file
  for (const figure of root.dataset.drawnBy ? all("figure[id]") : []) {
    const name = figure.id.replace(/-figure$/, "");
    const command = `${root.dataset.drawnBy} --figure ${name}`;
    const code = make("code", { textContent: command });
    const copy = button("Copy", `Copy the command that draws ${name} as PDF`, async () => {
      getSelection().selectAllChildren(code); // to be copied by hand where the browser lets no page do it
      await navigator.clipboard?.writeText(command);
      copy.textContent = "Copied";
    });
    figure.append(make("div", { className: "buttons soft" }, "As PDF:", code, copy));
  }
  for (const code of all("code")) { // no line ends within an option
    code.innerHTML = code.innerHTML.replace(/--[\w-]+/g, '<span class="whole">$&</span>');
  }

  // Zoom: the part of the width that is shown, the same in all panels, and that of each height
  for (const figure of all("figure[data-zoom]")) {
    const plots = all("svg.plot", figure).map((plot) => {
      const height = plot.height.baseVal.value;
      const share = (node, name, whole) => parseFloat(node.getAttribute(name) || 0) / whole;
      const parts = all(".pt > svg, svg.pt, .xt, .yt", plot).map((node) => [
        node,
        node.matches(".yt") ? null : share(node, "x", 100),
        node.matches(".xt") ? null : share(node, "y", height),
      ]);
      return { plot, height, parts };
    });
    const whole = [...plots, 0].map(() => [0, 1]);
    let [x, ...heights] = whole;
    const draw = () => {
      const within = ([low, high], share) => (share === null ? 0.5 : (share - low) / (high - low));
      const wide = x[1] - x[0];
      plots.forEach(({ plot, height, parts }, i) => {
        const [top, bottom] = heights[i];
        const tall = bottom - top;
        for (const [node, across, down] of parts) {
          const at = [within(x, across), within(heights[i], down)];
          if (across !== null) node.setAttribute("x", `${100 * at[0]}%`);
          if (down !== null) node.setAttribute("y", height * at[1]);
          node.closest(".pt, .xt, .yt").classList.toggle("out", at.some((n) => n < -0.005 || n > 1.005));
        }
        for (const bar of all(".pt .bar", plot)) bar.style.transform = `scaleY(${1 / tall})`;
        for (const box of all(".lines", plot)) {
          box.setAttribute("viewBox", `${1000 * x[0]} ${height * top} ${1000 * wide} ${height * tall}`);
        }
        for (const end of all(".end", plot)) end.classList.toggle("out", wide < 1);
        plot.classList.toggle("zoomed", wide < 0.6 || tall < 0.6);
      });
      out.disabled = back.disabled = wide >= 1;
      keep("zoom", wide < 1 ? [x, ...heights].flat().map((n) => +n.toFixed(3)).join() : "");
    };
    const by = (factor) => {
      [x, ...heights] = [x, ...heights].map(([low, high]) => {
        const size = Math.min(1, (high - low) * factor);
        const start = Math.min(Math.max((low + high - size) / 2, 0), 1 - size);
        return [start, start + size];
      });
      draw();
    };
    const into = button("Zoom in", "Zoom in", () => by(0.5));
    const out = button("Zoom out", "Zoom out", () => by(2));
    const back = button("Whole figure", "Show the whole figure", () => by(Infinity));
    const hint = make("span", { className: "soft", textContent: "or drag over a part of it" });
    all(".panels", figure)[0].after(make("div", { className: "buttons" }, into, out, back, hint));
    plots.forEach(({ plot }, i) => plot.addEventListener("pointerdown", (down) => {
      if (down.pointerType !== "mouse" || down.button) return;
      down.preventDefault();
      const area = plot.getBoundingClientRect();
      const drag = new AbortController();
      const box = document.createElementNS("http://www.w3.org/2000/svg", "path");
      box.setAttribute("class", "drag");
      plot.append(box);
      let across, along; // what the drag has covered, in shares
      addEventListener("pointermove", (event) => {
        const span = (from, to, start, size) =>
          [from, to].map((n) => Math.min(Math.max((n - start) / size, 0), 1)).sort((a, b) => a - b);
        across = span(down.clientX, event.clientX, area.left, area.width);
        along = span(down.clientY, event.clientY, area.top, area.height);
        const [[l, r], [t, b]] = [across.map((n) => n * area.width), along.map((n) => n * area.height)];
        box.setAttribute("d", `M${l} ${t}H${r}V${b}H${l}z`);
      }, drag);
      addEventListener("pointerup", () => {
        drag.abort();
        box.remove();
        const size = (range) => (range ? range[1] - range[0] : 0);
        if (size(across) < 0.03 || size(along) < 0.03) return;
        const part = ([low, high], shares) => shares.map((share) => low + share * (high - low));
        x = part(x, across);
        heights[i] = part(heights[i], along);
        draw();
        const swallow = (click) => click.stopPropagation(); // the drag's end is no choice of a cell
        addEventListener("click", swallow, { capture: true, once: true });
        setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
      }, drag);
    }));
    const saved = (state.get("zoom") || "").split(",").map(Number);
    if (saved.length === 2 * whole.length && saved.every(Number.isFinite)) {
      [x, ...heights] = whole.map((_, i) => saved.slice(2 * i, 2 * i + 2));
    }
    draw();
  }

  // Tables: sort by a column, show the rows that hold a text
  const missing = (text) => text === "" || text === "–";
  const number = (text) => parseFloat(text.replace(/[,≥ ]/g, "").replace("−", "-"));
  const words = new Intl.Collator("en", { numeric: true }); // (64, 16) before (128, 16)
  for (const table of all("table[id]")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = all("thead th", table);
    const sort = (i, way) => {
      const value = ({ cells }) => cells[i].dataset.v ?? cells[i].textContent.trim();
      const numeric = rows.every((row) => missing(value(row)) || Number.isFinite(number(value(row))));
      const sign = way === "descending" ? -1 : 1;
      const order = (one, other) => {
        const [a, b] = [value(one), value(other)];
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        return sign * (numeric ? number(a) - number(b) : words.compare(a, b));
      };
      body.append(...[...rows].sort(order));
      heads.forEach((head, n) => (n === i ? head.setAttribute("aria-sort", way) : head.removeAttribute("aria-sort")));
    };
    heads.forEach((head, i) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.onclick = () => {
        const way = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        sort(i, way);
        keep(`sort-${table.id}`, `${i},${way}`);
      };
    });
    const [column, way] = (state.get(`sort-${table.id}`) || "").split(",");
    if (heads[column] && /^(a|de)scending$/.test(way)) sort(Number(column), way);
    if (rows.length > 6) {
      const count = make("span");
      count.setAttribute("role", "status");
      const placeholder = rows[0].dataset.cell ? `such as ${rows[0].cells[0].textContent}` : "some of their words";
      const input = make("input", { type: "search", placeholder });
      const filter = (text) => {
        const wanted = text.trim().toLowerCase();
        let seen = 0;
        for (const row of rows) {
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
          seen += !row.hidden;
        }
        count.textContent = wanted ? `${seen} of the ${rows.length} rows here` : "";
      };
      input.oninput = () => {
        filter(input.value);
        keep(`only-${table.id}`, input.value.trim());
      };
      const label = make("label", {}, "Show rows with ", input);
      table.closest(".wide").before(make("div", { className: "filter" }, label, count));
      input.value = state.get(`only-${table.id}`) || "";
      filter(input.value);
    }
  }

  // What the address says
  const arrive = (event) => {
    const before = state;
    read();
    if (event && !state.size && before.size) { // a link within the page keeps the rest
      state = before;
      keep("", place);
    }
    setTheme(["light", "dark"].includes(state.get("theme")) ? state.get("theme") : "");
    choose(chosen());
  };
  addEventListener("hashchange", arrive);
  arrive();
  if (place && state.size) document.getElementById(place)?.scrollIntoView();
})();
