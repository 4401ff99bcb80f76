package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// RevealCommand sanitizes a command, a path or an address as [Reveal] does, for the user to decide on,
// and is stricter: every character counts there, so a non-ASCII character stays only where it cannot
// pass for an ASCII one.
//
//   - Letters stay in words of one script. Chinese, Japanese and Korean letters may
//     stand beside Latin ones. Other letters in a word with Latin ones are named,
//     as are words that only look Latin, and scripts no longer in use.
//   - Other signs are named outside quotes, except pictures and Chinese, Japanese
//     and Korean signs within names in these scripts. Within quotes the usual signs
//     of prose stay.
func RevealCommand(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x7f || IsHazard(r) }) < 0 {
		return s
	}
	s = Text(s)
	s, more := strings.CutSuffix(s, "…") // coder's ellipsis where the text was cut
	var b strings.Builder
	for _, p := range splitCommand(s) {
		p.reveal(&b)
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
}

// splitCommand returns the parts of a command. A here-document counts as quoted.
func splitCommand(s string) []commandPart {
	c := commandSplitter{text: s}
	for i := 0; i < len(s); i++ {
		i = c.readByte(i)
	}
	c.end(len(s))
	return c.parts
}

// commandSplitter splits a command into its parts.
type commandSplitter struct {
	text    string
	from    int    // where the current part begins
	quote   byte   // the quote of the current part, or 0
	closing string // the word that ends the here-document after this line, or ""
	parts   []commandPart
}

// end ends the current part in front of a byte.
func (c *commandSplitter) end(at int) {
	if at > c.from {
		c.parts = append(c.parts, commandPart{c.text[c.from:at], c.quote != 0})
	}
	c.from = at
}

// readByte reads the byte at i, and returns the last byte it has read.
func (c *commandSplitter) readByte(i int) int {
	b, rest := c.text[i], c.text[i+1:]
	switch {
	case b == '\\' && c.quote != '\'':
		return i + 1
	case c.quote != 0:
		if b == c.quote {
			c.end(i)
			c.quote = 0
		}
	case (b == '\'' || b == '"') && strings.IndexByte(rest, b) >= 0:
		c.end(i)
		c.quote = b
	case b == '\n' && c.closing != "":
		c.end(i)
		return c.readHeredoc(i)
	case b == '<' && c.closing == "" && strings.HasPrefix(rest, "<"):
		c.closing = heredocDelimiter(rest[1:])
		c.end(i)
	case strings.IndexByte(" \t\n;|&<>()$`", b) >= 0:
		c.end(i)
	}
	return i
}

// readHeredoc reads the here-document after the newline at i, if its end is there.
func (c *commandSplitter) readHeredoc(i int) int {
	if n := strings.Index(c.text[i:]+"\n", "\n"+c.closing+"\n"); n > 0 {
		c.quote = '\n'
		c.end(i + n)
		c.quote = 0
		i += n
	}
	c.closing = ""
	return i
}

// commandPart is a part of a command: one word between blanks and shell operators, these operators, or a
// quoted text.
type commandPart struct {
	text   string
	quoted bool
}

// heredocDelimiter returns the word that ends the here-document starting at the front of s, or "" if none
// starts there.
func heredocDelimiter(s string) string {
	s = strings.TrimLeft(strings.TrimPrefix(s, "-"), " \t")
	s = strings.TrimLeft(s, `'"\`)
	n := strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 || !isWordRune(r) })
	if n < 0 {
		return ""
	}
	return s[:n]
}

// reveal writes the part, with the names of the characters that may not stay.
func (p commandPart) reveal(b *strings.Builder) {
	c := commandContext{commandPart: p, ownScript: p.hasOwnScript(), prev: ' '}
	c.eastern = strings.ContainsFunc(p.text, func(r rune) bool { return isEastern(r) && !isStrokeLike(r) })
	for i, n := 0, 0; i < len(p.text); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(p.text[i:])
		c.next, _ = utf8.DecodeRuneInString(p.text[i+n:])
		if r < 0x80 || c.mayStay(i, r) {
			b.WriteString(p.text[i : i+n])
		} else {
			b.WriteString(HazardName(r))
		}
		c.prev = r
	}
}

// commandContext is what decides about a character of a part.
type commandContext struct {
	commandPart
	eastern    bool // the part has a letter of Chinese, Japanese or Korean
	ownScript  bool
	prev, next rune
}

// mayStay reports whether the non-ASCII character r at i may stay.
func (c *commandContext) mayStay(i int, r rune) bool {
	switch {
	case r == 0xfe0f:
		return isPictograph(c.prev) || c.prev > 0xff && unicode.Is(unicode.So, c.prev)
	case isInvisible(r) || isLookalike(r):
		return false
	case isEastern(r):
		return !isStrokeLike(r) || c.eastern || r == '一' && !canBeginOption(c.next)
	case unicode.IsMark(r) && !isWordRune(c.prev):
		return false
	case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
		return c.isAllowedLetter(i, r, c.ownScript)
	case isPictograph(r):
		return true
	case isWidePunctuation(r) && c.eastern && isSafeWideSign(r, c.prev):
		return true
	case c.quoted:
		return c.mayStayQuoted(r)
	}
	return isWidePunctuation(r) && c.eastern &&
		(strings.ContainsRune("、。《》〈〉「」『』【】〔〕（）・", r) || isEastern(c.prev) && isEastern(c.next))
}

// mayStayQuoted reports whether a sign may stay within quotes.
func (c *commandContext) mayStayQuoted(r rune) bool {
	if c.eastern && r >= 0xff01 && r <= 0xff65 && r != '＂' && r != '＇' && r != wideTilde {
		return true
	}
	return isProseSign(r, c.prev, c.next) && (!isWidePunctuation(r) || c.eastern)
}

// hasOwnScript reports whether the passage has a word in a script other than Latin with at least one letter that
// identifies the script.
func (p commandPart) hasOwnScript() bool {
	for word := range strings.FieldsFuncSeq(p.text, func(r rune) bool { return !isWordRune(r) }) {
		if !strings.ContainsFunc(word, isLatin) && strings.ContainsFunc(word, func(r rune) bool {
			return r > 0x24f && unicode.IsLetter(r) && !isEastern(r) && !isLatinLookalike(r) && isCurrentScript(r)
		}) {
			return true
		}
	}
	return false
}

func isLatin(r rune) bool { return unicode.Is(unicode.Latin, r) }

// isAllowedLetter reports whether the letter r at i may stay: an accented Latin letter, or a letter of a word
// that is entirely in another, identifiable script.
func (p commandPart) isAllowedLetter(i int, r rune, own bool) bool {
	if r <= 0x24f || r >= 0x1e00 && r <= 0x1eff || r >= 0x300 && r <= 0x36f {
		return !isLatinLookalike(r) && (r < 0x180 || strings.ContainsRune(extraLatinLetters, r) || r >= 0x1cd && r <= 0x1dc || r >= 0x1e00)
	}
	if !isCurrentScript(r) {
		return false
	}
	from := strings.LastIndexFunc(p.text[:i], func(r rune) bool { return !isWordRune(r) }) + 1
	if from > 0 {
		_, n := utf8.DecodeRuneInString(p.text[from-1:])
		from += n - 1
	}
	to := strings.IndexFunc(p.text[i:], func(r rune) bool { return !isWordRune(r) })
	if to < 0 {
		to = len(p.text) - i
	}
	word := p.text[from : i+to]
	return own && !strings.ContainsFunc(word, isLatin)
}

// extraLatinLetters are letters beyond Latin Extended-A that living languages use.
const extraLatinLetters = "ƏəƠơƯưǤǥǦǧǨǩǪǫǴǵȘșȚțȲȳɓɗɛɔ"

// isCurrentScript reports whether r belongs to a script in current use, or to none.
func isCurrentScript(r rune) bool {
	return (!isPhonetic(r) || strings.ContainsRune(extraLatinLetters, r)) && unicode.In(r, []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Georgian, unicode.Hebrew, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Ethiopic, unicode.Mongolian, unicode.Inherited}...)
}

// isPhonetic reports whether r is a phonetic symbol.
func isPhonetic(r rune) bool {
	return r >= 0x250 && r <= 0x2ff || r >= 0x1d00 && r <= 0x1dbf || r >= 0x2c60 && r <= 0x2c7f || r >= 0xa700 && r <= 0xa7ff || r >= 0xab30 && r <= 0xab6f
}

// isEastern reports whether r is a letter of Chinese, Japanese or Korean.
func isEastern(r rune) bool {
	return r >= 0x1100 && (r == 0x30fc || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)) && unicode.IsLetter(r)
}

// canBeginOption reports whether r could begin an option after a dash, or continue a name. Elsewhere the numeral
// 一 is only a numeral.
func canBeginOption(r rune) bool {
	return r < 0x80 && (r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// isStrokeLike reports whether a letter could pass for a dash, slash or bar if no other East Asian letter
// stands beside it.
func isStrokeLike(r rune) bool {
	return strings.ContainsRune("一丨丶丿乀乁〇〡〳〵ーノヽヾゝゞニㅡㅣㅇㆍㄧ丄丅亅", r)
}

// isWidePunctuation reports whether r is a Chinese, Japanese or Korean punctuation mark.
func isWidePunctuation(r rune) bool {
	return r >= 0x3000 && r <= 0x303f || r == 0x30fb || r >= 0xff01 && r <= 0xff65 || r >= 0xffe0 && r <= 0xffe6
}

// isSafeWideSign reports whether a wide sign cannot be mistaken for a shell operator: a currency sign, or
// one that continues a word and has no special meaning there.
func isSafeWideSign(r, prev rune) bool {
	return strings.ContainsRune("￠￡￥￦", r) || strings.ContainsRune("！，：？％＋＝～", r) && (isWordRune(prev) || isWidePunctuation(prev))
}

// wideTilde is the wide tilde, which in front of a path would look like a home directory.
const wideTilde = '～'

// isPictograph reports whether r is a pictograph.
func isPictograph(r rune) bool {
	return r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f680 && r <= 0x1f6ff || r >= 0x1f900 && r <= 0x1f9ff || r >= 0x1fa70 && r <= 0x1faff
}

// isProseSign reports whether r is a common prose sign between prev and next.
func isProseSign(r, prev, next rune) bool {
	switch {
	case isDash(r):
		return !isOptionDash(prev, next)
	case r >= 0x2190 && r <= 0x21ff, r >= 0x2600 && r <= 0x2757, r == 0x2763, r == 0x2764, r >= 0x2794 && r <= 0x27bf:
		return true // arrows, ticks and stars
	}
	return strings.ContainsRune("¡¿«»·§¶°±²³×÷£€¥¢©®™¼½¾ªº“”„‘’‚‹›…•†‡‰№≤≥≠≈∞∑√、。《》〈〉「」『』【】〔〕（）！，：；？・，．、।،؛؟", r)
}

// isDash reports whether r is a typographic dash.
func isDash(r rune) bool { return r == 0x2013 || r == 0x2014 || r == 0x2212 }

// isOptionDash reports whether an ASCII dash at this place would begin an option or join a name.
func isOptionDash(prev, next rune) bool {
	joins := func(r rune) bool { return r < 0x80 && (unicode.IsLetter(r) || r == '-') }
	return joins(next) || isDash(next) && prev == ' ' || joins(prev) && !unicode.IsSpace(next) && next < 0x80
}
