// Tokenization of a query, as of the texts of the collection.

const DENSE = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\u30fc\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}";
const SPACED = `(?![${DENSE}])[\\p{L}\\p{N}\\p{M}\\u200c\\u200d]|\\p{Nd}`;
const ENDING = "(?:['\u2019](?:s|t|d|m|ll|re|ve)(?![\\p{L}\\p{N}]))?";
const RUNS = new RegExp(`(?:(?!\\p{Nd})[${DENSE}])+|(?![\\p{M}\\u200c\\u200d])(?:${SPACED})+${ENDING}`, "giu");
const IS_DENSE = new RegExp(`^[${DENSE}]`, "u");
const CLUSTERS = /[\p{L}\p{N}]\p{M}*/gu;
const LONGEST_WORD = 12;

// The known words of a query, and sequences of them.
function tokensOf(query, wordIndex, isKnown) {
  const { tokenizer, lowercase, ngram_range: [shortest, longest] } = wordIndex;
  const dropped = new Set(wordIndex.stop_words);
  const plain = lowercase ? query.normalize("NFKC").toLowerCase() : query.normalize("NFKC");
  const cut = tokenizer === "whitespace" ? plain.split(/\s+/) : cutQuery(plain, tokenizer, isKnown);
  const words = cut.filter((word) => !dropped.has(word));
  const found = [];
  for (let n = shortest; n <= longest; n++)
    for (let i = 0; i + n <= words.length; i++) found.push(words.slice(i, i + n).join(" "));
  return found.filter(isKnown);
}

function cutQuery(text, tokenizer, isKnown) {
  return (text.match(RUNS) || []).flatMap((run) => {
    if (tokenizer === "characters") return pairs(withoutEnding(run));
    if (!IS_DENSE.test(run)) return [withoutEnding(run)];
    if (tokenizer === "auto") return pairs(run);
    return tokenizer === "words" ? [run] : longestKnown([...run], isKnown);
  });
}

// "pastor" for "pastor's"; "don't" stays.
function withoutEnding(word) {
  const [stem, ending] = word.replace("\u2019", "'").split("'");
  return ending === undefined || (/^t$/i.test(ending) && /n$/i.test(stem)) ? word.replace("\u2019", "'") : stem;
}

function pairs(run) {
  const letters = run.match(CLUSTERS) || [];
  return letters.length < 2 ? letters : letters.slice(1).map((letter, i) => letters[i] + letter);
}

// Split greedily by the words of the map: the page has no other dictionary.
function longestKnown(letters, isKnown) {
  const found = [];
  for (let i = 0; i < letters.length; ) {
    let n = Math.min(LONGEST_WORD, letters.length - i);
    while (n > 1 && !isKnown(letters.slice(i, i + n).join(""))) n--;
    found.push(letters.slice(i, i + n).join(""));
    i += n;
  }
  return found;
}
