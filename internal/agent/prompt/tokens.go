package prompt

import (
	"unicode/utf8"

	"coder/internal/core/chat"
)

// Weights of the estimate, measured with real tokenizers on source code and Chinese prose: it
// is at most 10% off there, and the provider's own count replaces it as soon as there is one.
const (
	asciiPerToken  = 3.6
	tokensPerWide  = 0.7
	perMessage     = 4
	tokensPerImage = 1000

	bytesPerPDFToken = 50
	tokensPerOthers  = 0.5
	tokensPerDigit   = 0.42 // numbers and short lines are dense
	tokensPerLine    = 0.5
)

// Tokens estimates how many tokens a text has.
func Tokens(s string) int { return estimate(s) }

// Bytes is Tokens for a byte slice.
func Bytes(b []byte) int { return estimate(b) }

func estimate[T string | []byte](text T) int {
	var ascii, wide, other, digits, lines int
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			switch {
			case '0' <= c && c <= '9':
				digits++
			case c == '\n':
				lines++
			default:
				ascii++
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
		if r >= 0x2e80 {
			wide++
		} else {
			other++
		}
		i += size
	}
	return int(float64(ascii)/asciiPerToken + float64(wide)*tokensPerWide + float64(other)*tokensPerOthers +
		float64(digits)*tokensPerDigit + float64(lines)*tokensPerLine)
}

// MessageTokens estimates how many tokens m has.
func MessageTokens(m chat.Message) int {
	n := perMessage
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			n += Tokens(string(p))
		case chat.Reasoning:
			n += Tokens(p.Text)
		case chat.Image:
			if n += tokensPerImage; p.MediaType == chat.PDF {
				n += len(p.Data) / bytesPerPDFToken
			}
		case chat.ToolCall:
			n += Tokens(p.Name) + Tokens(string(p.Args))
		case chat.ToolResult:
			n += Tokens(p.Text)
		}
	}
	return n
}
