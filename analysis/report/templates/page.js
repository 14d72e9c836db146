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
  const root = document.documentElement;

  // State
  let place, state;
  const read = () => {
    const pairs = location.hash.slice(1).split("&").map((pair) => pair.split("=").map(decodeURIComponent));
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
  const choose = (cell, temporary) => {
    for (const node of tagged) {
      const own = node.dataset.cell === cell;
      node.classList.toggle("on", own && !!cell);
      node.classList.toggle("far", !!cell && !own && node.localName !== "tr");
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

  // A figure as a file, as it is shown: SVG, or PNG at twice its size
  const asSvg = (figure) => {
    const frame = figure.getBoundingClientRect();
    const parts = [];
    const place = (box) => `x="${box.left - frame.left}" y="${box.top - frame.top}"`;
    const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    const shift = { SUB: 3, SUP: -4 };
    const words = (node) => [...node.childNodes].map((child) => {
      const [text, dy] = [escape(child.textContent), shift[child.nodeName]];
      return dy ? `<tspan dy="${dy}" font-size="80%">${text}</tspan><tspan dy="${-dy}">&#8203;</tspan>` : text;
    }).join("");
    let bottom = 0;
    for (const key of all(".key", figure)) {
      const [mark, text] = [key.querySelector("svg"), key.querySelector("span")];
      const box = mark.getBoundingClientRect();
      parts.push(`<svg ${place(box)} width="26" height="14">${mark.innerHTML}</svg>`);
      parts.push(`<text x="${box.left - frame.left + 32}" y="${box.top - frame.top + 11}">${words(text)}</text>`);
    }
    for (const line of all(".panel .title span", figure)) {
      const box = line.getBoundingClientRect();
      parts.push(`<text x="${box.left - frame.left}" y="${box.bottom - frame.top - 4}">${words(line)}</text>`);
    }
    for (const plot of all("svg.plot", figure)) {
      const box = plot.getBoundingClientRect();
      const inner = plot.innerHTML.replace(/<a href="[^"]*"/g, "<a"); // no row to lead to
      parts.push(`<svg ${place(box)} class="${plot.getAttribute("class")}" width="${box.width}" height="${box.height}">${inner}</svg>`);
      bottom = Math.max(bottom, box.bottom - frame.top + 42);
    }
    const colours = getComputedStyle(root);
    const style = document.getElementById("marks").textContent + "svg{overflow:visible}.lines{overflow:hidden}";
    const plain = style.replace(/var\((--\w+)\)/g, (_, name) => colours.getPropertyValue(name));
    const defs = document.querySelector(".defs").innerHTML;
    const sheet = `<rect width="100%" height="100%" fill="${colours.getPropertyValue("--page")}"/>`;
    const size = `width="${frame.width}" height="${bottom}"`;
    const text = `<svg xmlns="http://www.w3.org/2000/svg" ${size}><style>${plain}</style>${defs}${sheet}${parts.join("")}</svg>`;
    return { text, width: frame.width, height: bottom };
  };
  const save = (blob, name) => {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
  };
  const button = (text, label, onclick) => {
    const node = make("button", { type: "button", textContent: text, onclick });
    node.setAttribute("aria-label", label);
    return node;
  };
  for (const figure of all("figure[id]")) {
    const name = figure.id.replace(/-figure$/, "");
    const svg = button("SVG", `Save the figure ${name} as SVG`, () => {
      save(new Blob([asSvg(figure).text], { type: "image/svg+xml" }), `${name}.svg`);
    });
    const png = button("PNG", `Save the figure ${name} as PNG`, async () => {
      const { text, width, height } = asSvg(figure);
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await image.decode();
      const canvas = make("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => save(blob, `${name}.png`));
    });
    figure.querySelector("figcaption").before(make("div", { className: "buttons save" }, "Save as ", svg, png));
  }

  // Zoom: shares of the width, the same for all panels, and of the height of each
  for (const figure of all("figure[data-zoom]")) {
    const plots = all("svg.plot", figure).map((plot) => ({
      plot,
      height: plot.height.baseVal.value,
      y: [0, 1],
      parts: all(".pt > svg, svg.pt, .xt, .yt", plot).map((node) => ({
        node,
        shown: node.closest(".pt, .xt, .yt"),
        bar: node.querySelector(".bar"),
        share: node.matches(".yt") ? null : parseFloat(node.getAttribute("x") || 0) / 100,
        down: node.matches(".xt") ? null : parseFloat(node.getAttribute("y") || 0),
      })),
    }));
    let x = [0, 1];
    const part = ([low, high], from, to) => [low + from * (high - low), low + to * (high - low)];
    const draw = () => {
      const wide = x[1] - x[0];
      for (const { plot, height, y, parts } of plots) {
        const tall = y[1] - y[0];
        const top = height * (1 - y[1]);
        for (const { node, shown, bar, share, down } of parts) {
          const [across, below] = [(share - x[0]) / wide, (down - top) / tall];
          if (share !== null) node.setAttribute("x", `${100 * across}%`);
          if (down !== null) node.setAttribute("y", below);
          const outside = (at, size) => at < -0.005 * size || at > 1.005 * size;
          const out = (share !== null && outside(across, 1)) || (down !== null && outside(below, height));
          shown.classList.toggle("out", out);
          if (bar) bar.style.transform = `scaleY(${1 / tall})`;
        }
        for (const box of all(".lines", plot)) {
          box.setAttribute("viewBox", `${1000 * x[0]} ${top} ${1000 * wide} ${height * tall}`);
        }
        for (const end of all(".end", plot)) end.classList.toggle("out", wide < 1);
        plot.classList.toggle("zoomed", wide < 0.6 || tall < 0.6);
      }
      out.disabled = back.disabled = wide >= 1;
      const numbers = [x, ...plots.map((one) => one.y)].flat().map((n) => Math.round(n * 1000) / 1000);
      keep("zoom", wide < 1 ? numbers.join(",") : "");
    };
    const by = (factor) => {
      const scale = (range) => {
        const size = Math.min(1, (range[1] - range[0]) * factor);
        const start = Math.min(Math.max((range[0] + range[1] - size) / 2, 0), 1 - size);
        return [start, start + size];
      };
      x = scale(x);
      for (const one of plots) one.y = scale(one.y);
      draw();
    };
    const into = button("Zoom in", "Zoom in", () => by(0.5));
    const out = button("Zoom out", "Zoom out", () => by(2));
    const back = button("Whole figure", "Show the whole figure", () => by(Infinity));
    const hint = make("span", { className: "soft", textContent: "or drag over a part of it" });
    figure.prepend(make("div", { className: "buttons" }, into, out, back, hint));
    for (const one of plots) {
      one.plot.addEventListener("pointerdown", (down) => {
        if (down.pointerType !== "mouse" || down.button) return;
        down.preventDefault();
        const area = one.plot.getBoundingClientRect();
        const clamp = (n) => Math.min(Math.max(n, 0), 1);
        const share = (event) => [
          clamp((event.clientX - area.left) / area.width),
          clamp((event.clientY - area.top) / area.height),
        ];
        const from = share(down);
        const ends = (event) => share(event).map((to, i) => [Math.min(from[i], to), Math.max(from[i], to)]);
        const box = document.createElementNS("http://www.w3.org/2000/svg", "path");
        box.setAttribute("class", "drag");
        const drag = new AbortController();
        const move = (event) => {
          const [[l, r], [t, b]] = ends(event);
          const [width, height] = [area.width * (r - l), area.height * (b - t)];
          box.setAttribute("d", `M${area.width * l} ${area.height * t}h${width}v${height}h${-width}z`);
          one.plot.append(box);
        };
        const up = (event) => {
          drag.abort();
          box.remove();
          const [[l, r], [t, b]] = ends(event);
          if (r - l < 0.03 || b - t < 0.03) return;
          x = part(x, l, r);
          one.y = part(one.y, 1 - b, 1 - t);
          draw();
          const swallow = (click) => click.stopPropagation(); // the drag's end is no choice of a cell
          addEventListener("click", swallow, { capture: true, once: true });
          setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
        };
        addEventListener("pointermove", move, drag);
        addEventListener("pointerup", up, drag);
      });
    }
    const saved = (state.get("zoom") || "").split(",").map(Number);
    if (saved.length === 2 + 2 * plots.length && saved.every(Number.isFinite)) {
      x = saved.slice(0, 2);
      plots.forEach((one, i) => (one.y = saved.slice(2 + 2 * i, 4 + 2 * i)));
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
      const input = make("input", { type: "search", placeholder: "such as (64, 16) or found" });
      const filter = (text) => {
        const wanted = text.trim().toLowerCase();
        let seen = 0;
        for (const row of rows) {
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
          seen += !row.hidden;
        }
        count.textContent = wanted ? `${seen} of ${rows.length} rows` : "";
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
  const arrive = () => {
    read();
    setTheme(["light", "dark"].includes(state.get("theme")) ? state.get("theme") : "");
    choose(chosen());
  };
  addEventListener("hashchange", arrive);
  arrive();
  if (place && state.size) document.getElementById(place)?.scrollIntoView();
})();
