package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// bar is a value in a plot.
type bar struct {
	name  string
	value float64
	text  string // the formatted value
}

func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

func formatFigure(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func maxValue(bars []bar) (m float64) {
	for _, b := range bars {
		m = max(m, b.value)
	}
	return m
}

// plotBars draws horizontal bars, each after its name.
func plotBars(title string, bars []bar) markup {
	const row, left, width = 26.0, 140.0, 420.0
	top := maxValue(bars)
	var all []markup
	for i, b := range bars {
		y := float64(i) * row
		long := 0.0
		if top > 0 {
			long = (width - left - 60) * b.value / top
		}
		all = append(all,
			element("text", attr{"x", formatFigure(left - 8)}, attr{"y", formatFigure(y + 17)}, attr{"text-anchor", "end"},
				b.name),
			element("rect", classAttr("bar"), attr{"x", formatFigure(left)}, attr{"y", formatFigure(y + 4)},
				attr{"width", formatFigure(long)}, attr{"height", formatFigure(row - 8)}, attr{"rx", "3"}),
			element("text", classAttr("dim"), attr{"x", formatFigure(left + long + 6)}, attr{"y", formatFigure(y + 17)}, b.text))
	}
	return renderPlot(title, width, float64(len(bars))*row, all)
}

// maxColumns is how many columns fit; earlier ones are left out.
const maxColumns = 60

// plotColumns draws vertical columns in order of time.
func plotColumns(title string, bars []bar) markup {
	const width, high, foot, headroom = 420.0, 120.0, 18.0, 16.0
	bars = bars[max(0, len(bars)-maxColumns):]
	top, wide := maxValue(bars), min(width/float64(max(len(bars), 1)), 70)
	if top == 0 {
		return ""
	}
	var all []markup
	all = append(all, element("line", classAttr("axis"), attr{"x1", "0"}, attr{"x2", formatFigure(width)},
		attr{"y1", formatFigure(high)}, attr{"y2", formatFigure(high)}))
	for i, b := range bars {
		x, tall := float64(i)*wide, (high-headroom)*b.value/top
		all = append(all, element("g", element("title", b.name+": "+b.text),
			element("rect", classAttr("bar"), attr{"x", formatFigure(x + 1)}, attr{"y", formatFigure(high - tall)},
				attr{"width", formatFigure(max(wide-3, 1))}, attr{"height", formatFigure(tall)}, attr{"rx", "2"})))
		if len(bars) <= 6 {
			all = append(all, element("text", classAttr("dim"), attr{"x", formatFigure(x + wide/2)},
				attr{"y", formatFigure(high - tall - 4)}, attr{"text-anchor", "middle"}, b.text))
		}
		if every := max(1, len(bars)/20); i%every == 0 {
			all = append(all, element("text", attr{"x", formatFigure(x + wide/2)}, attr{"y", formatFigure(high + foot - 4)},
				attr{"text-anchor", "middle"}, b.name))
		}
	}
	return renderPlot(title, width, high+foot, all)
}

func renderPlot(title string, width, high float64, parts []markup) markup {
	return element("figure", element("figcaption", title),
		element("svg", attr{"viewBox", "0 0 " + formatFigure(width) + " " + formatFigure(high)}, attr{"role", "img"},
			attr{"aria-label", title}, parts))
}
