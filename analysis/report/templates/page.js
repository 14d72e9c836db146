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
  const read = () => {
    const [place, ...pairs] = decodeURIComponent(location.hash.slice(1)).split("&");
    const named = place.includes("=") ? [place, ...pairs] : pairs;
    const state = new Map(named.map((pair) => [pair.split("=")[0], pair.slice(pair.indexOf("=") + 1)]));
    return { place: place.includes("=") ? "" : place, state };
  };
  let { place, state } = read();
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
    if (point.localName === "svg") point.setAttribute("role", "img");
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
    const origin = point.querySelector("use").getScreenCTM();
    return [origin.e, origin.f];
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
      const copy = plot.cloneNode(true);
      for (const point of all("a", copy)) point.removeAttribute("href");
      parts.push(`<svg ${place(box)} width="${box.width}" height="${box.height}" overflow="visible">${copy.innerHTML}</svg>`);
      bottom = Math.max(bottom, box.bottom - frame.top + 42);
    }
    const colours = getComputedStyle(root);
    const style = document.getElementById("marks").textContent + ".plot,svg{overflow:visible}.lines{overflow:hidden}.finer,.out{visibility:hidden}";
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

  // Zoom: shares of the panel's width and height, the same across for panels that share an x axis
  for (const figure of all("figure[data-zoom]")) {
    const plots = all("svg.plot", figure).map((plot) => ({
      plot,
      height: plot.height.baseVal.value,
      y: [0, 1],
      marks: all(":scope > .pt > svg, :scope > svg.pt", plot).map((svg) => ({
        svg,
        point: svg.closest(".pt"),
        x: parseFloat(svg.getAttribute("x")) / 100,
        y: parseFloat(svg.getAttribute("y")),
        bar: svg.querySelector(".bar"),
      })),
      lines: all(":scope > svg.lines", plot),
      xs: all(".xt", plot).map((tick) => [tick, parseFloat(tick.getAttribute("x") || 0) / 100]),
      ys: all(".yt", plot).map((tick) => [tick, parseFloat(tick.getAttribute("y") || 0)]),
      ends: all(":scope > .end", plot),
    }));
    for (const one of plots) for (const mark of one.marks) mark.d = mark.bar && mark.bar.getAttribute("d");
    let x = [0, 1];
    const draw = () => {
      const wide = x[1] - x[0];
      for (const one of plots) {
        const { height } = one;
        const [low, high] = one.y;
        const tall = high - low;
        const up = (y) => (y - height * (1 - high)) / tall;
        const across = (share) => (share - x[0]) / wide;
        const inside = (share, y) => share > -0.005 && share < 1.005 && y > -1 && y < height + 1;
        for (const mark of one.marks) {
          const [share, y] = [across(mark.x), up(mark.y)];
          mark.svg.setAttribute("x", `${100 * share}%`);
          mark.svg.setAttribute("y", y);
          mark.point.classList.toggle("out", !inside(share, y));
          if (mark.bar) mark.bar.setAttribute("d", mark.d.replace(/-?[\d.]+(?=$|V)/g, (n) => n / tall));
        }
        for (const box of one.lines) {
          box.setAttribute("viewBox", `${1000 * x[0]} ${height * (1 - high)} ${1000 * wide} ${height * tall}`);
        }
        const zoomed = wide < 0.6 || tall < 0.6;
        const settle = (tick, seen) => {
          tick.classList.toggle("out", !seen);
          if (tick.dataset.finer ??= tick.classList.contains("finer") ? "1" : "") tick.classList.toggle("finer", !zoomed);
        };
        for (const [tick, share] of one.xs) {
          tick.setAttribute("x", `${100 * across(share)}%`);
          settle(tick, inside(across(share), 0));
        }
        for (const [tick, y] of one.ys) {
          tick.setAttribute("y", up(y));
          settle(tick, inside(0.5, up(y)));
        }
        for (const end of one.ends) end.classList.toggle("out", wide < 1 || tall < 1);
      }
      out.disabled = back.disabled = wide >= 1;
      const numbers = [...x, ...plots.flatMap((one) => one.y)].map((n) => Math.round(n * 1000) / 1000);
      keep("zoom", wide < 1 ? numbers.join(",") : "");
    };
    const scale = ([low, high], factor) => {
      const size = Math.min(1, (high - low) * factor);
      const start = Math.min(Math.max((low + high - size) / 2, 0), 1 - size);
      return [start, start + size];
    };
    const by = (factor) => {
      x = scale(x, factor);
      for (const one of plots) one.y = scale(one.y, factor);
      draw();
    };
    const into = button("Zoom in", "Zoom in", () => by(0.5));
    const out = button("Zoom out", "Zoom out", () => by(2));
    const back = button("Whole figure", "Show the whole figure", () => {
      x = [0, 1];
      for (const one of plots) one.y = [0, 1];
      draw();
    });
    const hint = make("span", { className: "soft", textContent: "or drag over a part of it" });
    figure.prepend(make("div", { className: "buttons" }, into, out, back, hint));
    for (const one of plots) {
      let start = null;
      let box = null;
      const share = (event) => {
        const area = one.plot.getBoundingClientRect();
        const clamp = (n) => Math.min(Math.max(n, 0), 1);
        return [clamp((event.clientX - area.left) / area.width), clamp((event.clientY - area.top) / area.height)];
      };
      one.plot.addEventListener("pointerdown", (event) => {
        if (event.pointerType === "mouse" && event.button === 0) start = share(event);
        if (start) event.preventDefault();
      });
      addEventListener("pointermove", (event) => {
        if (!start) return;
        const to = share(event);
        if (!box) {
          box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
          box.setAttribute("class", "drag");
          one.plot.append(box);
        }
        const [left, top] = [0, 1].map((i) => Math.min(start[i], to[i]));
        box.setAttribute("x", `${100 * left}%`);
        box.setAttribute("y", top * one.height);
        box.setAttribute("width", `${100 * Math.abs(to[0] - start[0])}%`);
        box.setAttribute("height", Math.abs(to[1] - start[1]) * one.height);
      });
      addEventListener("pointerup", (event) => {
        if (!start) return;
        const to = share(event);
        const [l, r] = [start[0], to[0]].sort((a, b) => a - b);
        const [t, b] = [start[1], to[1]].sort((a, b) => a - b);
        start = null;
        box?.remove();
        box = null;
        if (r - l < 0.03 || b - t < 0.03) return;
        const wide = x[1] - x[0];
        x = [x[0] + l * wide, x[0] + r * wide];
        const tall = one.y[1] - one.y[0];
        one.y = [one.y[0] + (1 - b) * tall, one.y[0] + (1 - t) * tall];
        draw();
        const swallow = (click) => click.stopPropagation(); // the drag's end is no choice of a cell
        addEventListener("click", swallow, { capture: true, once: true });
        setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
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
  const value = (cell) => cell.dataset.v ?? cell.textContent.trim();
  const number = (text) => parseFloat(text.replace(/[,≥ ]/g, "").replace("−", "-"));
  const words = new Intl.Collator("en", { numeric: true }); // (64, 16) before (128, 16)
  for (const table of all("table[id]")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = all("thead th", table);
    const sort = (i, way) => {
      const numeric = rows.every((row) => {
        const text = value(row.cells[i]);
        return text === "" || text === "–" || Number.isFinite(number(text));
      });
      const keyed = rows.map((row, n) => {
        const text = value(row.cells[i]);
        const missing = text === "" || text === "–" || (numeric && !Number.isFinite(number(text)));
        return { row, n, missing, key: numeric ? number(text) : text };
      });
      keyed.sort((a, b) => {
        if (a.missing !== b.missing) return a.missing ? 1 : -1;
        const order = a.missing ? 0 : numeric ? a.key - b.key : words.compare(a.key, b.key);
        return order * (way === "descending" ? -1 : 1) || a.n - b.n;
      });
      body.append(...keyed.map((one) => one.row));
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
    if (heads[column] && ["ascending", "descending"].includes(way)) sort(Number(column), way);
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
    ({ place, state } = read());
    setTheme(["light", "dark"].includes(state.get("theme")) ? state.get("theme") : "");
    choose(chosen());
  };
  addEventListener("hashchange", arrive);
  arrive();
  if (place && state.size) document.getElementById(place)?.scrollIntoView();
})();
