package cli

import (
	"strings"
	"testing"
)

// TestAQRCodeHasItsThreeCorners and a border, and is left out where it does not fit.
func TestAQRCodeHasItsThreeCorners(t *testing.T) {
	const address = "https://192.168.100.100:54321/0123456789abcdef/?token=" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	rows := qrCode(address, 60)
	if len(rows) == 0 {
		t.Fatal("nothing was drawn in 60 columns")
	}
	var modules [][]bool
	for _, row := range rows {
		row = strings.TrimSuffix(strings.TrimPrefix(row, "\x1b[30;107m"), "\x1b[m")
		var upper, lower []bool
		for _, c := range row {
			upper, lower = append(upper, c == '▀' || c == '█'), append(lower, c == '▄' || c == '█')
		}
		modules = append(modules, upper, lower)
	}
	width := len(modules[0])
	if size := width - 2*quietModules; (size-17)%4 != 0 || width > 60 {
		t.Errorf("%d modules are no size of a code", size)
	}
	// A corner is a ring of seven modules around a square of three.
	corner := func(left, top int) {
		for y := range 7 {
			for x := range 7 {
				ring := x == 0 || y == 0 || x == 6 || y == 6
				square := x >= 2 && x <= 4 && y >= 2 && y <= 4
				if modules[top+y][left+x] != (ring || square) {
					t.Errorf("the corner at %d, %d is broken at %d, %d", left, top, x, y)
				}
			}
		}
	}
	far := width - quietModules - 7
	corner(quietModules, quietModules)
	corner(far, quietModules)
	corner(quietModules, far)
	for x := range width {
		if modules[0][x] || modules[1][x] {
			t.Error("the border above is not white")
		}
	}
	if qrCode(address, 30) != nil || qrCode(strings.Repeat("x", 5000), 0) != nil {
		t.Error("a code was drawn that does not fit")
	}
}
