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
	// a here-document counts as quoted
	var list []commandPart

	from, quote, closing := 0, byte(0), ""
	end := func(at int) {
		if at > from {
			list = append(list, commandPart{s[from:at], quote != 0})
		}
		from = at
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				end(i)
				quote = 0
			}
		case (c == '\'' || c == '"') && strings.IndexByte(s[i+1:], c) >= 0:
			end(i)
			quote = c
		case c == '\n' && closing != "":
			end(i)
			if n := strings.Index(s[i:]+"\n", "\n"+closing+"\n"); n > 0 {
				quote = c
				end(i + n)
				quote = 0
				i += n
			}
			closing = ""
		case c == '<' && closing == "" && strings.HasPrefix(s[i:], "<<"):
			closing = heredocDelimiter(s[i+2:])
			end(i)
		case strings.IndexByte(" \t\n;|&<>()$`", c) >= 0:
			end(i)
		}
	}
	end(len(s))
	for _, p := range list {
		p.reveal(&b)
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
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

func (p commandPart) reveal(b *strings.Builder) {
	eastern := strings.ContainsFunc(p.text, func(r rune) bool { return isEastern(r) && !isStrokeLike(r) })
	own := p.hasOwnScript()
	prev := rune(' ')
	for i := 0; i < len(p.text); {
		r, n := utf8.DecodeRuneInString(p.text[i:])
		next, _ := utf8.DecodeRuneInString(p.text[i+n:])
		ok := r < 0x80
		switch {
		case ok:
		case r == 0xfe0f:
			ok = isPictograph(prev) || prev > 0xff && unicode.Is(unicode.So, prev)
		case isInvisible(r) || isLookalike(r):
		case isEastern(r):
			ok = !isStrokeLike(r) || eastern || r == '一' && !canBeginOption(next)
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
			ok = p.isAllowedLetter(i, r, own) && !(unicode.IsMark(r) && !isWordRune(prev))
		case isPictograph(r):
			ok = true
		case isWidePunctuation(r) && eastern && isSafeWideSign(r, prev):
			ok = true
		case p.quoted:
			ok = isProseSign(r, prev, next) && (!isWidePunctuation(r) || eastern) || eastern && r >= 0xff01 && r <= 0xff65 && r != '＂' && r != '＇' && r != wideTilde
		case isWidePunctuation(r):
			ok = eastern && (strings.ContainsRune("、。《》〈〉「」『』【】〔〕（）・", r) || isEastern(prev) && isEastern(next))
		}
		if ok {
			b.WriteString(p.text[i : i+n])
		} else {
			b.WriteString(HazardName(r))
		}
		prev = r
		i += n
	}
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
