package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image/color"
	"io"
	"slices"
	"strings"
	"time"

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
	color.RGBA{0x3b, 0x40, 0x4a, 0xff}, color.RGBA{0xf0, 0x71, 0x78, 0xff}, color.RGBA{0x98, 0xc3, 0x79, 0xff},
	color.RGBA{0xe5, 0xc0, 0x7b, 0xff},
	color.RGBA{0x61, 0xaf, 0xef, 0xff}, color.RGBA{0xc6, 0x78, 0xdd, 0xff}, color.RGBA{0x56, 0xb6, 0xc2, 0xff},
	color.RGBA{0xd7, 0xda, 0xe0, 0xff},
	color.RGBA{0x7f, 0x84, 0x8e, 0xff}, color.RGBA{0xff, 0x8b, 0x92, 0xff}, color.RGBA{0xb5, 0xe8, 0x90, 0xff},
	color.RGBA{0xff, 0xd8, 0x8f, 0xff},
	color.RGBA{0x82, 0xc4, 0xff, 0xff}, color.RGBA{0xe0, 0x9a, 0xf2, 0xff}, color.RGBA{0x7a, 0xd6, 0xe0, 0xff},
	color.RGBA{0xff, 0xff, 0xff, 0xff},
}

// A frame is a screen and how long it is shown.
type frame struct {
	lines []string // as SVG, at the top of the picture
	shown time.Duration
}

// The times of a film that people read: everything takes longer than it took, a screen
// is shown no shorter and the last one longer.
const (
	slower   = 1.7
	shortest = 250 * time.Millisecond
	rest     = 5 * time.Second
)

// frames plays a film and returns its screens. Screens that stood for less than a blink are left out.
func frames(film []byte) ([]frame, error) {
	screen := vt.NewEmulator(cols, rows)
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, screen) }() // answers to what the film asks the terminal
	defer func() {
		if w, ok := screen.InputPipe().(io.Closer); ok {
			_ = w.Close()
		}
		<-drained
	}()
	var all []frame
	at := time.Duration(0)
	for line := range bytes.Lines(film) {
		var event []any
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		now := time.Duration(event[0].(float64) * slower * float64(time.Second))
		if n := len(all); n > 0 {
			all[n-1].shown = now - at
			if all[n-1].shown < shortest/4 {
				all = all[:n-1]
			}
		}
		if _, err := screen.Write([]byte(event[2].(string))); err != nil {
			return nil, err
		}
		if lines := pictured(screen); len(all) > 0 && slices.Equal(all[len(all)-1].lines, lines) {
			at = now - all[len(all)-1].shown
		} else {
			all, at = append(all, frame{lines: lines}), now
		}
	}
	for i := range all {
		all[i].shown = max(all[i].shown, shortest)
	}
	all[len(all)-1].shown = rest
	return all, nil
}

// svg is a film as a picture that moves. A viewer that shows no motion shows the screen at still.
func svg(all []frame, still int) string {
	var b strings.Builder
	width, height := 2*margin+charWidth*float64(cols), 2*margin+lineHeight*float64(rows)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="a session in the terminal">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", paper)
	known := make(map[string]int)
	b.WriteString("<defs>\n")
	total := time.Duration(0)
	for _, f := range all {
		total += f.shown
		for _, line := range f.lines {
			if _, there := known[line]; !there && line != "" {
				known[line] = len(known)
				fmt.Fprintf(&b, `<g id="l%d">%s</g>`+"\n", known[line], line)
			}
		}
	}
	fmt.Fprintf(&b, "</defs>\n"+
		`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="%s">`+"\n", ink)
	at := time.Duration(0)
	for i, f := range all {
		display := "none"
		if i == still {
			display = "inline"
		}
		begins, ends := at.Seconds()/total.Seconds(), (at+f.shown).Seconds()/total.Seconds()
		fmt.Fprintf(&b, `<g display="%s"><animate attributeName="display" calcMode="discrete" dur="%.1fs" repeatCount="indefinite" values="none;inline;none" keyTimes="0;%.4f;%.4f"/>`,
			display, total.Seconds(), begins, min(ends, 0.9999))
		for y, line := range f.lines {
			if line != "" {
				fmt.Fprintf(&b, `<use href="#l%d" y="%.0f"/>`, known[line], lineHeight*float64(y))
			}
		}
		b.WriteString("</g>\n")
		at += f.shown
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// pictured is the lines of a screen, a piece of text for every stretch of one style.
func pictured(screen *vt.Emulator) []string {
	lines := make([]string, screen.Height())
	for y := range lines {
		var b strings.Builder
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
			stretch(&b, text, start, x, style)
		}
		lines[y] = b.String()
	}
	return lines
}

// stretch draws text from one column up to another.
func stretch(b *strings.Builder, text string, from, to int, s uv.Style) {
	fore, back := s.Fg, s.Bg
	if s.Attrs&uv.AttrReverse != 0 {
		fore, back = back, fore
	}
	left, top, wide := margin+charWidth*float64(from), margin, charWidth*float64(to-from)
	if back != nil {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, left, top, wide, lineHeight,
			hex(back))
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
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s>%s</text>`, left, top+14, wide, look,
		strings.ReplaceAll(html.EscapeString(inked), " ", "&#160;"))
}

// hex is a colour as pages write it.
func hex(c color.Color) string {
	if basic, ok := c.(ansi.BasicColor); ok && int(basic) < len(palette) {
		c = palette[basic]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
