package term

import (
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

// row is a line whose cells have two blanks or more between them.
func row(text string) (l display.TableLine) {
	for at := 0; at < len(text); {
		cell, _, _ := strings.Cut(text[at:], "  ")
		if cell = strings.TrimSpace(cell); cell != "" {
			at += strings.Index(text[at:], cell)
			l.Cells, l.Columns = append(l.Cells, cell), append(l.Columns, ink.Width(text[:at]))
		}
		at += max(len(cell), 1)
	}
	return l
}

func TestLongLinesAreBrokenForPeople(t *testing.T) {
	const (
		undo     = "/undo [all|force|dry]    take back what the last turn did to files"
		sessions = "*  20260102-030405-abcdef  2026-01-02 03:04  12  mend the parser of dates"
	)
	for _, tt := range []struct {
		name, line string
		width      int
		want       string
	}{
		{"nobody knows the width", undo, 0, undo},
		{"it fits", undo, 80, undo},
		{"it just fits", undo, ink.Width(undo), undo},
		{"the last cell goes on below itself", undo, 56,
			"/undo [all|force|dry]    take back what the last turn\n                         did to files"},
		{"no room beside", undo, 40, "/undo [all|force|dry]\n    take back what the last turn did to\n    files"},
		{"a short one with no room beside", "/new                     start a new session, with an empty conversation", 40,
			"/new\n    start a new session, with an empty\n    conversation"},
		{"one that would fit beside", "/yolo                    switch to yolo mode", 40, "/yolo\n    switch to yolo mode"},
		{"arguments too long", "/mode [build|plan|default|auto-edit|yolo]", 40, "/mode\n[build|plan|default|auto-edit|yolo]"},
		{"set in far", strings.Repeat(" ", 25) + "show the mode, or switch to another", 40, "    show the mode, or switch to another"},
		{"set in far, with room", strings.Repeat(" ", 25) + "show the mode, or switch to another", 55,
			strings.Repeat(" ", 25) + "show the mode, or switch to\n" + strings.Repeat(" ", 25) + "another"},
		{"many cells", sessions, 40, "*  20260102-030405-abcdef\n    2026-01-02 03:04  12\n    mend the parser of dates"},
		{"prose", "Enter sends, Esc stops a turn.", 20, "Enter sends, Esc\nstops a turn."},
		{"a word too long for a line", "folder  /a/very/long/path/that/is/one/word", 20, "folder\n    /a/very/long/\n    path/that/is/\n    one/word"},
		{"a first word too long for a line", "/a/very/long/path/that/is/one/word  a folder", 20, "/a/very/long/path/\n    that/is/one/word\n    a folder"},
		{"at the edge it can be copied whole", "/a/very/long/path/that/is/one/word", 20, "/a/very/long/path/that/is/one/word"},
		{"Chinese in a word too long for a line", "folder  /项目/一个很长的目录名字/服务", 16, "folder\n    /项目/一个很\n    长的目录名\n    字/服务"},
		{"a word too long for the column", "sandbox        on  /a/very/long/path/that/is/one/word x", 45,
			"sandbox        on\n    /a/very/long/path/that/is/one/word x"},
		{"Chinese", "/undo [all]              撤回上一轮对文件的改动，以及（如果要求）命令的改动", 50,
			"/undo [all]              撤回上一轮对文件的改动，\n                         以及（如果要求）命令的改\n                         动"},
		{"a sign does not begin a line", "撤回上一轮对文件，以及", 16, "撤回上一轮对文\n件，以及"},
	} {
		if got := foldLine(row(tt.line), tt.width); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// Whatever the width, no word is lost.
func FuzzFold(f *testing.F) {
	f.Add("/undo [all]    take  back what 撤回（上一轮）的 e\u0301", 20)
	f.Add("     a", 3)
	f.Add("  ", 1)
	f.Fuzz(func(t *testing.T, line string, width int) {
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r") {
			return
		}
		if got := foldLine(row(line), width); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(line), "") {
			t.Fatalf("%q at %d becomes %q", line, width, got)
		}
	})
}
