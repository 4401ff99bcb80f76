package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// The picture in points: of a character, and around them all.
const (
	charWidth, lineHeight = 8.4, 19.0
	margin                = 16.0
)

const (
	paper = "#16181d"
	ink   = "#d7dae0"
)

// palette is how the colours of the terminal look on that paper: black, red,
// green, yellow, blue, magenta, cyan, white, and the same brighter.
var palette = []color.Color{
	color.RGBA{0x3b, 0x40, 0x4a, 0xff}, color.RGBA{0xf0, 0x71, 0x78, 0xff}, color.RGBA{0x98, 0xc3, 0x79, 0xff}, color.RGBA{0xe5, 0xc0, 0x7b, 0xff},
	color.RGBA{0x61, 0xaf, 0xef, 0xff}, color.RGBA{0xc6, 0x78, 0xdd, 0xff}, color.RGBA{0x56, 0xb6, 0xc2, 0xff}, color.RGBA{0xd7, 0xda, 0xe0, 0xff},
	color.RGBA{0x7f, 0x84, 0x8e, 0xff}, color.RGBA{0xff, 0x8b, 0x92, 0xff}, color.RGBA{0xb5, 0xe8, 0x90, 0xff}, color.RGBA{0xff, 0xd8, 0x8f, 0xff},
	color.RGBA{0x82, 0xc4, 0xff, 0xff}, color.RGBA{0xe0, 0x9a, 0xf2, 0xff}, color.RGBA{0x7a, 0xd6, 0xe0, 0xff}, color.RGBA{0xff, 0xff, 0xff, 0xff},
}

// svg is the screen as a picture, a piece of text for every stretch of one style.
func svg(screen *vt.Emulator) string {
	var b strings.Builder
	width, height := 2*margin+charWidth*float64(screen.Width()), 2*margin+lineHeight*float64(screen.Height())
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="a session in the terminal">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="%s">`+"\n", ink)
	for y := range screen.Height() {
		for x := 0; x < screen.Width(); {
			cell := screen.CellAt(x, y)
			if cell == nil {
				x++
				continue
			}
			text, start, style := "", x, cell.Style
			for x < screen.Width() {
				next := screen.CellAt(x, y)
				if next == nil || !next.Style.Equal(&style) {
					break
				}
				text += next.Content
				x += max(next.Width, 1)
			}
			stretch(&b, text, start, x, y, style)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// stretch draws text from one column up to another.
func stretch(b *strings.Builder, text string, from, to, line int, s uv.Style) {
	fore, back := s.Fg, s.Bg
	if s.Attrs&uv.AttrReverse != 0 {
		fore, back = back, fore
	}
	left, top, wide := margin+charWidth*float64(from), margin+lineHeight*float64(line), charWidth*float64(to-from)
	if back != nil {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, wide, lineHeight, hex(back))
	}
	inked := strings.TrimRight(text, " ")
	if inked == "" {
		return
	}
	wide -= charWidth * float64(len(text)-len(inked))
	look := ""
	if fore != nil {
		look += fmt.Sprintf(` fill="%s"`, hex(fore))
	}
	if s.Attrs&uv.AttrBold != 0 {
		look += ` font-weight="bold"`
	}
	if s.Attrs&uv.AttrItalic != 0 {
		look += ` font-style="italic"`
	}
	if s.Attrs&uv.AttrFaint != 0 {
		look += ` opacity="0.65"`
	}
	if s.Underline != 0 {
		look += ` text-decoration="underline"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s>%s</text>`+"\n", left, top+14, wide, look, strings.ReplaceAll(html.EscapeString(inked), " ", "&#160;"))
}

// hex is a colour as pages write it.
func hex(c color.Color) string {
	if basic, ok := c.(ansi.BasicColor); ok && int(basic) < len(palette) {
		c = palette[basic]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
