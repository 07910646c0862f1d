// Colors of equal lightness (OKLCH), for labels, regions and numbers.

// A color as three numbers from 0 to 255.
function oklch(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((value) => {
    const kept = Math.min(1, Math.max(0, value));
    return 255 * (kept <= 0.0031308 ? 12.92 * kept : 1.055 * kept ** (1 / 2.4) - 0.055);
  });
}

function css(color) {
  return `rgb(${color.map((part) => Math.round(part)).join(" ")})`;
}

function mixed(from, to, fraction) {
  return from.map((part, i) => part + (to[i] - part) * fraction);
}

function colorOf(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}

// Colors of labels, a golden section apart, in three tones that take turns.
function hue(which) {
  const isDark = document.documentElement.dataset.theme === "dark";
  const [lightness, chroma] = [[0.58, 0.15], [0.7, 0.13], [0.48, 0.13]][which % 3];
  return css(oklch(lightness + (isDark ? 0.12 : 0), chroma, (255 + which * 137.508) % 360));
}

// From low to high: blue over green to yellow.
function sequential(fraction) {
  const at = Math.min(1, Math.max(0, fraction));
  return oklch(0.4 + 0.45 * at, 0.12 + 0.03 * at, 280 - 190 * at);
}

// From -1 over 0 to 1: blue, neutral, orange.
function diverging(value, isDark) {
  const size = Math.min(1, Math.abs(value));
  const middle = isDark ? 0.32 : 0.95;
  const end = isDark ? 0.6 : 0.66;
  return oklch(middle + (end - middle) * size, 0.16 * size, value > 0 ? 50 : 250);
}
