// The filter language: `PUT & lost`, `/api/* !304`, `(POST | PUT) >=400 ms>1000`.
//
// Terms next to each other, or with `&`, must all match; `|` is or, `!` is not, parentheses group.

const methods = new Set("GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT TRACE".split(" "));

const words = {
  lost: (x) => x.outcome === "lost",
  open: (x) => x.outcome === "open",
  waiting: (x) => x.outcome === "open",
  ok: (x) => x.outcome === "ok",
  error: (x) => x.outcome === "client" || x.outcome === "server" || x.outcome === "lost",
  conflict: (x) => x.status === 409 || x.status === 412,
  slow: (x) => x.ms !== null && x.ms >= 1000,
  fault: (x) => x.fault !== null,
  retry: (x) => x.attempt > 1,
  tcp: (x) => x.kind === "connection",
};

const numbers = {
  status: (x) => x.status,
  ms: (x) => x.ms,
  try: (x) => x.attempt,
  up: (x) => x.requestBytes,
  down: (x) => x.responseBytes,
  bytes: (x) => (x.requestBytes ?? 0) + (x.responseBytes ?? 0),
};

const texts = {
  method: (x) => x.method,
  path: (x) => x.target,
  proxy: (x) => x.proxy,
  client: (x) => x.client ?? "",
  link: (x) => x.link ?? "",
  end: (x) => x.end ?? "open",
  fault: (x) => (x.fault ? `${x.fault.name} ${x.fault.point}` : ""),
};

const comparisons = {
  ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b,
  "!=": (a, b) => a !== b, "=": (a, b) => a === b, ":": (a, b) => a === b,
};

/** The words and keys of the language, for the help. */
export const vocabulary = { words: Object.keys(words), numbers: Object.keys(numbers), texts: Object.keys(texts) };

class Problem extends Error {}

function tokens(text) {
  const list = [];
  const pattern = /\s*(?:([&|!()])|"((?:[^"\\]|\\.)*)"|([^\s&|!()"]*=?(?:"(?:[^"\\]|\\.)*")|(?:[^\s&|()"!]|!(?==))+))/gy;
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const match = pattern.exec(text);
    if (!match) {
      if (text.slice(start).trim() === "") break;
      throw new Problem(`cannot read ${JSON.stringify(text.slice(start).trim().slice(0, 20))}`);
    }
    if (match[1] === "&") list.push({ sign: "&" });
    else if (match[1]) list.push({ sign: match[1] });
    else if (match[2] !== undefined) list.push({ literal: match[2].replace(/\\(.)/g, "$1") });
    else list.push({ term: match[3] });
  }
  return list;
}

// A `*` stands for any text. There is no backtracking: a filter is never slow.
function glob(pattern, anchored) {
  const wanted = pattern.toLowerCase();
  if (!wanted.includes("*")) {
    return anchored ? (text) => text.toLowerCase().startsWith(wanted) : (text) => text.toLowerCase().includes(wanted);
  }
  const parts = wanted.split("*");
  return (text) => {
    const value = text.toLowerCase();
    if (!value.startsWith(parts[0])) return false;
    let at = parts[0].length;
    for (const part of parts.slice(1, -1)) {
      const found = value.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    const last = parts[parts.length - 1];
    return value.length - last.length >= at && value.endsWith(last);
  };
}

function termTest(term) {
  if (methods.has(term)) return (x) => x.method === term;
  if (/^[1-5][0-9][0-9]$/.test(term)) return (x) => x.status === Number(term);
  if (/^[1-5]xx$/i.test(term)) return (x) => x.status !== null && Math.floor(x.status / 100) === Number(term[0]);
  if (Object.hasOwn(words, term.toLowerCase())) return words[term.toLowerCase()];
  if (term.startsWith("/")) return pathTest(term);
  const match = /^([a-z]*)(>=|<=|!=|[<>=:])(.*)$/i.exec(term);
  if (!match) return glob2(term);
  const [, givenKey, sign, given] = match;
  const key = givenKey.toLowerCase() || "status";
  const value = given.replace(/^"(.*)"$/, "$1").replace(/\\(.)/g, "$1");
  if (value === "") throw new Problem(`a value is missing after ${JSON.stringify(term)}`);
  if (key === "status" && /^[1-5]xx$/i.test(value)) {
    const family = Number(value[0]);
    return (x) => x.status !== null && (sign === "!=") !== (Math.floor(x.status / 100) === family);
  }
  if (Object.hasOwn(numbers, key) && !(key === "status" && /[^0-9.]/.test(value))) {
    const amount = Number(value.replace(/(ms|b)$/i, ""));
    if (!Number.isFinite(amount)) throw new Problem(`${key} needs a number, not ${JSON.stringify(value)}`);
    const read = numbers[key];
    const compare = comparisons[sign];
    return (x) => { const it = read(x); return it !== null && it !== undefined && compare(it, amount); };
  }
  if (Object.hasOwn(texts, key)) {
    if (!["=", ":", "!="].includes(sign)) throw new Problem(`${key} can be compared with ":" and "!="`);
    const test = glob(value, false);
    return (x) => (sign === "!=") !== test(texts[key](x));
  }
  const known = [...vocabulary.numbers, ...vocabulary.texts].join(", ");
  throw new Problem(`unknown key ${JSON.stringify(key)}; known: ${known}`);
}

function pathTest(term) {
  const test = glob(term, true);
  return (x) => test(x.target);
}

function glob2(term) {
  const test = glob(term, false);
  return (x) => test(x.target) || x.method.toLowerCase() === term.toLowerCase();
}

/**
 * Returns `{ test, problem }`: a function from an exchange to whether it matches, or the reason why the text is no
 * filter.
 */
export function parseFilter(text) {
  try {
    const list = tokens(text);
    if (list.length > 200) throw new Problem("more than 200 terms");
    let at = 0;
    const sign = (wanted) => at < list.length && list[at].sign === wanted;
    function either(depth) {
      const parts = [both(depth)];
      while (sign("|")) { at += 1; parts.push(both(depth)); }
      return parts.length === 1 ? parts[0] : (x) => parts.some((part) => part(x));
    }
    function both(depth) {
      const parts = [];
      while (at < list.length && !sign("|") && !sign(")")) {
        if (sign("&")) {
          if (parts.length === 0) throw new Problem('a term is missing before "&"');
          at += 1;
          if (at >= list.length || "|)&".includes(list[at].sign ?? "-")) {
            throw new Problem('a term is missing after "&"');
          }
        }
        parts.push(single(depth));
      }
      if (parts.length === 0) {
        throw new Problem(`a term is missing ${at < list.length ? `before "${list[at].sign}"` : "at the end"}`);
      }
      return parts.length === 1 ? parts[0] : (x) => parts.every((part) => part(x));
    }
    function single(depth) {
      if (depth > 50) throw new Problem("too many parentheses");
      const token = list[at];
      at += 1;
      if (token === undefined) throw new Problem("a term is missing at the end");
      if (token.sign === "!") { const part = single(depth + 1); return (x) => !part(x); }
      if (token.sign === "(") {
        const part = either(depth + 1);
        if (!sign(")")) throw new Problem('")" is missing');
        at += 1;
        return part;
      }
      if (token.sign) throw new Problem(`a term is missing before "${token.sign}"`);
      return token.literal === undefined ? termTest(token.term) : glob2(token.literal);
    }
    if (list.length === 0) return { test: () => true, problem: null };
    const test = either(0);
    if (at < list.length) throw new Problem(`unexpected "${list[at].sign}"`);
    return { test, problem: null };
  } catch (error) {
    if (error instanceof Problem) return { test: null, problem: error.message };
    throw error;
  }
}
