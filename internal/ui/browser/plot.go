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

func digestText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

func figure(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func most(bars []bar) (m float64) {
	for _, b := range bars {
		m = max(m, b.value)
	}
	return m
}

// plotBars draws horizontal bars, each after its name.
func plotBars(title string, bars []bar) markup {
	const row, left, width = 26.0, 140.0, 420.0
	top := most(bars)
	var all []markup
	for i, b := range bars {
		y := float64(i) * row
		long := 0.0
		if top > 0 {
			long = (width - left - 60) * b.value / top
		}
		all = append(all,
			el("text", attr{"x", figure(left - 8)}, attr{"y", figure(y + 17)}, attr{"text-anchor", "end"}, b.name),
			el("rect", class("bar"), attr{"x", figure(left)}, attr{"y", figure(y + 4)}, attr{"width", figure(long)}, attr{"height", figure(row - 8)}, attr{"rx", "3"}),
			el("text", class("dim"), attr{"x", figure(left + long + 6)}, attr{"y", figure(y + 17)}, b.text))
	}
	return plot(title, width, float64(len(bars))*row, all)
}

// mostColumns is how many columns fit; earlier ones are left out.
const mostColumns = 60

// plotColumns draws vertical columns in order of time.
func plotColumns(title string, bars []bar) markup {
	const width, high, foot, headroom = 420.0, 120.0, 18.0, 16.0
	bars = bars[max(0, len(bars)-mostColumns):]
	top, wide := most(bars), min(width/float64(max(len(bars), 1)), 70)
	if top == 0 {
		return ""
	}
	var all []markup
	all = append(all, el("line", class("axis"), attr{"x1", "0"}, attr{"x2", figure(width)}, attr{"y1", figure(high)}, attr{"y2", figure(high)}))
	for i, b := range bars {
		x, tall := float64(i)*wide, (high-headroom)*b.value/top
		all = append(all, el("g", el("title", b.name+": "+b.text),
			el("rect", class("bar"), attr{"x", figure(x + 1)}, attr{"y", figure(high - tall)}, attr{"width", figure(max(wide-3, 1))}, attr{"height", figure(tall)}, attr{"rx", "2"})))
		if len(bars) <= 6 {
			all = append(all, el("text", class("dim"), attr{"x", figure(x + wide/2)}, attr{"y", figure(high - tall - 4)}, attr{"text-anchor", "middle"}, b.text))
		}
		if every := max(1, len(bars)/20); i%every == 0 {
			all = append(all, el("text", attr{"x", figure(x + wide/2)}, attr{"y", figure(high + foot - 4)}, attr{"text-anchor", "middle"}, b.name))
		}
	}
	return plot(title, width, high+foot, all)
}

func plot(title string, width, high float64, parts []markup) markup {
	return el("figure", el("figcaption", title),
		el("svg", attr{"viewBox", "0 0 " + figure(width) + " " + figure(high)}, attr{"role", "img"}, attr{"aria-label", title}, parts))
}
