package cli

import (
	"strings"

	"rsc.io/qr/coding"
)

// quietModules is the white border that readers of the code need.
const quietModules = 2

// qrCode draws a text as a QR code for a phone's camera, black on white on every theme: one character is two modules
// high. It draws nothing if the code is wider than columns.
func qrCode(text string, columns int) (rows []string) {
	version := coding.Version(coding.MinVersion)
	for version <= coding.MaxVersion && coding.String(text).Bits(version) > version.DataBytes(coding.L)*8 {
		version++
	}
	if version > coding.MaxVersion {
		return nil
	}
	plan, err := coding.NewPlan(version, coding.L, 0)
	if err != nil {
		return nil
	}
	code, err := plan.Encode(coding.String(text))
	if err != nil || columns > 0 && code.Size+2*quietModules > columns {
		return nil
	}
	for y := -quietModules; y < code.Size+quietModules; y += 2 {
		var row strings.Builder
		for x := -quietModules; x < code.Size+quietModules; x++ {
			row.WriteString(halfBlocks[code.Black(x, y)][code.Black(x, y+1)])
		}
		rows = append(rows, "\x1b[30;107m"+row.String()+"\x1b[m")
	}
	return rows
}

// halfBlocks are the characters by the upper and the lower module.
var halfBlocks = map[bool]map[bool]string{
	false: {false: " ", true: "▄"},
	true:  {false: "▀", true: "█"},
}
