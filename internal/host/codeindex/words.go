package codeindex

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Limits of a word.
const (
	maxWord   = 128 // bytes; longer runs are data
	maxParts  = 24  // parts of one word
	maxDigits = 6   // digits of a number
)

// isWordByte marks the bytes of words. Beyond ASCII a byte may not belong to one; [isTruncated] checks that.
var isWordByte = func() (is [256]bool) {
	for c := range is {
		is[c] = c == '_' || c >= utf8.RuneSelf || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	return is
}()

// eachWord calls do for each run of word bytes in text.
func eachWord(text []byte, do func(word []byte)) {
	for i := 0; i < len(text); {
		if !isWordByte[text[i]] {
			i++
			continue
		}
		from := i
		for i < len(text) && isWordByte[text[i]] {
			i++
		}
		do(text[from:i])
	}
}

// termsOf returns the index terms of a word.
func termsOf(word string) []string { return appendTerms(nil, appendParts(nil, word)) }

// appendTerms appends the index terms of a word with these parts to list: the parts without their endings, the
// parts of compounds written as one word (filename), a part with the number after it (utf8, sha256), and
// pairs of neighbouring characters in scripts without spaces between words.
func appendTerms(list, parts []string) []string {
	for i, p := range parts {
		switch {
		case isDigits(p):
			if i > 0 && !isUnspaced(parts[i-1]) {
				list = append(list, parts[i-1]+p)
			}
			if len(p) > 1 && len(p) <= maxDigits {
				list = append(list, p)
			}
		case isUnspaced(p):
			list = append(list, bigrams(p)...)
		case len(p) > 1 && !stopWords()[p]:
			list = append(list, stem(p))
			list = append(list, compounds()[p]...)
		}
	}
	return list
}

// appendParts splits a word, in lower case, at underscores, where the case or script changes, and between
// letters and digits, and appends the parts to list.
func appendParts(list []string, word string) []string {
	ascii := isASCII(word)
	if ascii && len(word) > maxWord {
		return list
	}
	lowered := word
	if ascii {
		lowered = strings.ToLower(word) // all at once, since the length stays the same
	}
	from, last := 0, classOther
	end := func(to int) {
		switch {
		case last == classOther || to <= from || len(list) >= maxParts+len(word)/4:
		case ascii:
			list = append(list, lowered[from:to])
		default:
			list = append(list, strings.ToLower(word[from:to]))
		}
	}
	for i, r := range word {
		c := classOf(r)
		switch {
		case c == last:
			continue
		case last == classUpper && c == classLower:
			plural := word[i] == 's' && (len(word) == i+1 || !unicode.IsLower(rune(word[i+1]))) // URLs
			if i-from > 1 && !plural {                                                          // HTTPServer
				_, size := utf8.DecodeLastRuneInString(word[:i])
				end(i - size)
				from = i - size
			}
		default:
			end(i)
			from = i
		}
		last = c
	}
	end(len(word))
	return list
}

// charClass is the class of a character in word splitting.
type charClass uint8

const (
	classOther charClass = iota
	classLower           // also letters of scripts without case
	classUpper
	classDigit
	classUnspaced // in a script without spaces between words
)

func classOf(r rune) charClass {
	switch {
	case 'a' <= r && r <= 'z':
		return classLower
	case 'A' <= r && r <= 'Z':
		return classUpper
	case '0' <= r && r <= '9':
		return classDigit
	case r < utf8.RuneSelf || r == utf8.RuneError:
		return classOther
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
		return classUnspaced
	case unicode.IsUpper(r):
		return classUpper
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return classLower
	}
	return classOther
}

func isDigits(s string) bool { return s[0] >= '0' && s[0] <= '9' }

func isUnspaced(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return classOf(r) == classUnspaced
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// bigrams returns the pairs of neighbouring characters in s, or s itself if it is a single one.
func bigrams(s string) (list []string) {
	prev := -1
	for i, r := range s {
		if prev >= 0 {
			list = append(list, s[prev:i+utf8.RuneLen(r)])
		}
		prev = i
	}
	if len(list) == 0 {
		return []string{s}
	}
	return list
}

// hashTerm returns the hash that represents a term. Its values are evenly distributed.
func hashTerm(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// joinName returns a name as one word, so that both "readfile" and "read file" find readFile.
func joinName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// stopWords are words without meaning for a search.
var stopWords = lazySet(`a about all also am an and any are as at be been but by can could did do does doing done
	for from had has have having he her here him his how i if in into is it its just let like may me might my no nor
	not of on onto or our out over own same shall she should so some such than that the their them then there these
	they this those through to too under until up upon us very via was we were what when where whether which while
	who whom whose why will with within without would you your
	func function def fn return nil null none var else elif endif fi self`)

// fillerWords are words that are typical of questions, not of code.
var fillerWords = lazySet(`code codebase file files find class method methods functions implementation implemented
	implement implements logic place places part section defined definition declared located responsible work works
	happen happens handled show tell look search get gets used use uses using make makes made whole project repo
	repository program`)

// set is a set of lower-case words.
type set map[string]bool

func (s set) has(word string) bool { return s[strings.ToLower(word)] }

func newSet(text string) set {
	s := make(set)
	for w := range strings.FieldsSeq(text) {
		s[w] = true
	}
	return s
}

//go:embed compounds.txt
var compoundText string

// compounds maps compound words to the terms of their parts.
var compounds = sync.OnceValue(func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.Lines(compoundText) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		for w := range strings.FieldsSeq(rest) {
			if !stopWords()[w] {
				m[word] = append(m[word], stem(w))
			}
		}
	}
	return m
})

// lazySet returns a set that is built on first use, so that programs that never search do not pay for it.
func lazySet(text string) func() set {
	return sync.OnceValue(func() set { return newSet(text) })
}

// irregularStems maps words with a false or missing ending to their terms.
var irregularStems = map[string]string{
	"embed": "embed", "embeds": "embed", "embedded": "embed", "embedding": "embed",
	"mode": "mode", "modes": "mode", "alias": "alias", "aliases": "alias", "during": "during", "thing": "thing",
	"things":  "thing",
	"indices": "index", "analyses": "analysis", "ran": "run", "built": "build", "sent": "send",
	"ids": "id", "ips": "ip", "dbs": "db", "apis": "api", "uris": "uri", "cpus": "cpu", "menus": "menu",
	"written": "writ", "wrote": "writ", "chosen": "choos", "chose": "choos",
}

// stem removes the endings of a lower-case English word, so that parse, parses, parsed, parsing and
// parser become equal. The result need not be a word. Other words stay unchanged.
func stem(w string) string {
	if to, ok := irregularStems[w]; ok {
		return to
	}
	if len(w) < 4 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
		return w
	}
	switch {
	case len(w) > 4 && (strings.HasSuffix(w, "ies") || strings.HasSuffix(w, "ied")):
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
	default:
		w = strings.TrimSuffix(w, "s")
	}
	w, _ = cutEnding(w, "ing", "ed")
	if root, ok := strings.CutSuffix(w, "e"); ok && len(root) > 2 {
		w = stemAte(root)
	}
	for more := true; more; {
		w, more = cutEnding(w, "er", "or", "ion")
	}
	if root, ok := strings.CutSuffix(w, "y"); ok {
		w = root + "i" // retry, retries
	}
	return w
}

// cutEnding removes the first matching ending from w, if enough remains.
func cutEnding(w string, endings ...string) (root string, ok bool) {
	for _, e := range endings {
		root, ok := strings.CutSuffix(w, e)
		if !ok || len(root) < 3 || !strings.ContainsAny(root, "aeiouy") {
			continue
		}
		switch last := root[len(root)-1]; {
		case e == "ed" && last == 'e': // speed
			return w, false
		case (e == "ion" || e == "or") && last != 't' && last != 's': // million, color
			return w, false
		}
		if short := stemAte(root); short != root {
			return short, true
		}
		if n := len(root); n > 3 && root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
			root = root[:n-1] // consonant doubled before the ending: mapping, logger
		}
		return root, true
	}
	return w, false
}

// stemAte unifies generate, generating, generator and generation, which have already lost their last
// letters.
func stemAte(root string) string {
	short, ok := strings.CutSuffix(root, "at")
	if !ok || len(short) < 3 || strings.ContainsRune("aeiou", rune(short[len(short)-1])) {
		return root
	}
	return short
}
