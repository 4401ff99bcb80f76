package prompt

import (
	"unicode/utf8"

	"coder/internal/core/chat"
)

// Weights of the estimate, measured with real tokenizers on source code and Chinese prose: it
// is at most 10% off there, and the provider's own count replaces it as soon as there is one.
const (
	asciiPerToken     = 3.6
	tokensPerWideRune = 0.7
	tokensPerMessage  = 4
	tokensPerImage    = 1000

	bytesPerPDFToken   = 50
	tokensPerOtherRune = 0.5
	tokensPerDigit     = 0.42 // numbers and short lines are dense
	tokensPerLine      = 0.5
)

// EstimateTokens estimates how many tokens a text has.
func EstimateTokens(s string) int { return estimate(s) }

// EstimateBytesTokens is Tokens for a byte slice.
func EstimateBytesTokens(b []byte) int { return estimate(b) }

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
	return int(float64(ascii)/asciiPerToken + float64(wide)*tokensPerWideRune + float64(other)*tokensPerOtherRune +
		float64(digits)*tokensPerDigit + float64(lines)*tokensPerLine)
}

// EstimateMessageTokens estimates how many tokens m has.
func EstimateMessageTokens(m chat.Message) int {
	n := tokensPerMessage
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			n += EstimateTokens(string(p))
		case chat.Reasoning:
			n += EstimateTokens(p.Text)
		case chat.Image:
			if n += tokensPerImage; p.MediaType == chat.PDF {
				n += len(p.Data) / bytesPerPDFToken
			}
		case chat.ToolCall:
			n += EstimateTokens(p.Name) + EstimateTokens(string(p.Args))
		case chat.ToolResult:
			n += EstimateTokens(p.Text)
		}
	}
	return n
}
