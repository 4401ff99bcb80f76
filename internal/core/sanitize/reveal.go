package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reveal sanitizes s as [Text] does, for the user to decide on: it also names invisible characters and
// letters that pass for others. A letter of another script counts as such next to ASCII letters, or if
// nothing else in its line is of that script.
func Reveal(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x7f || IsHazard(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.SplitAfterSeq(Text(s), "\n") {
		revealLine(&b, line)
	}
	return b.String()
}

func revealLine(b *strings.Builder, line string) {
	foreign := strings.ContainsFunc(line, func(r rune) bool {
		return r > 0x24f && unicode.IsLetter(r) && !isLatinLookalike(r) && !isLookalike(r) &&
			!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	})
	prev := rune(' ')
	for line != "" {
		end := strings.IndexFunc(line, func(r rune) bool { return !isWordRune(r) })
		switch {
		case end < 0:
			end = len(line)
			fallthrough
		case end > 0:
			revealWord(b, line[:end], foreign)
			prev, line = 'a', line[end:]
		default:
			prev, line = revealSign(b, line, prev)
		}
	}
}

// revealWord writes a word of a line; foreign means that the line has letters of another script.
func revealWord(b *strings.Builder, word string, foreign bool) {
	mixed := strings.ContainsFunc(word, func(r rune) bool { return r < 0x80 && unicode.IsLetter(r) })
	for _, r := range word {
		if isInvisible(r) || isLookalike(r) || isLatinLookalike(r) && (mixed || !foreign) {
			b.WriteString(HazardName(r))
		} else {
			b.WriteRune(r)
		}
	}
}

// revealSign writes the sign at the front of a line, and returns the sign and the rest of the line.
func revealSign(b *strings.Builder, line string, prev rune) (sign rune, rest string) {
	r, n := utf8.DecodeRuneInString(line)
	next, _ := utf8.DecodeRuneInString(line[n:])
	if isInvisible(r) || isLookalike(r) || isDash(r) && unicode.IsSpace(prev) && isOptionDash(prev, next) ||
		r == wideTilde && !isWordRune(prev) && !isEastern(next) {
		b.WriteString(HazardName(r))
	} else {
		b.WriteRune(r)
	}
	return r, line[n:]
}

// isWordRune reports whether r is part of a word, including marks and joiners.
func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.Is(unicode.Cf, r)
}

// isInvisible reports whether r is invisible: it has no width, is an unexpected blank, or is drawn over the
// previous character.
func isInvisible(r rune) bool {
	switch {
	case r < 0xa0:
		return false
	case r == 0xa0, r == 0x034f, r == 0x115f, r == 0x1160, r == 0x1680, r == 0x2800, r == 0x3164, r == 0xffa0, r == 0x17b4,
		r == 0x17b5, r == 0xfffc:
		return true
	case r >= 0x2000 && r <= 0x200f, r == 0x202f, r == 0x205f, r >= 0x180b && r <= 0x180f, r >= 0xfe00 && r <= 0xfe0f:
		return true
	case r >= 0x0334 && r <= 0x0338, r >= 0x20d0 && r <= 0x20ff:
		return true // overlays
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Me)
}

// isLookalike reports whether r looks like a character of commands and paths, whatever is next to it.
func isLookalike(r rune) bool {
	switch r {
	case 0x02d0, 0x2010, 0x2011, 0x2012, 0x2043, 0x204f, 0x2216, 0x05c3, 0x0589, 0x2795, 0x2796, 0x2571, 0x2572,
		0x037e, 0x2024, 0x2044, 0x2215, 0x2236, 0x2223, 0x29f8, 0x29f5, 0xa789, 0xa4f8, 0x01c0, 0x01c3, 0x2758, 0x212a,
		0x212b, 0xff04, 0xff06, 0xff0d, 0xff0e, 0xff0f, 0xff3c, 0xff40, 0xff5c:
		return true
	}
	return r >= 0xfe50 && r <= 0xfe6f || r >= 0xff10 && r <= 0xff19 || r >= 0xff21 && r <= 0xff3a || r >= 0xff41 &&
		r <= 0xff5a || r >= 0x1d400 && r <= 0x1d7ff || r >= 0x2160 && r <= 0x217f || r > 0x24f && unicode.IsLetter(r) &&
		!isPhonetic(r) && !isCurrentScript(r) && !isEastern(r)
}

// isLatinLookalike reports whether r is a letter of another script that looks like a Latin one.
func isLatinLookalike(r rune) bool { return r > 0x7f && strings.ContainsRune(latinLookalikes, r) }

const latinLookalikes = "аеорсухіїјѕһԁԛԝӏкАВЕЗКМНОРСТУХІЇЈЅԌԚԜҮүһ" + // Cyrillic
	"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυικα" + // Greek
	"օոսհզցԱՍՕ" + // Armenian
	"ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ" + // Cherokee
	"ɑɡıȷɩɪꞮǃ" // other Latin letters
