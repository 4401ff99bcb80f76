package lineedit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"coder/internal/ui/cells"
)

func sessions() *Picker {
	p := &Picker{Title: "which:", Help: "help", EmptyText: "nothing"}
	for i, title := range []string{"mend the parser", "第二个问题", "print 3 tables", strings.Repeat("long ", 40)} {
		p.Items = append(p.Items, Item{Choice{Text: fmt.Sprint(i + 1), Note: title}, fmt.Sprintf("s%d", i+1)})
	}
	return p
}

func TestPicking(t *testing.T) {
	for script, want := range map[string]string{
		"<enter>": "s1", "<down><enter>": "s2", "<up><enter>": "s4", "<down><down><down><down><enter>": "s1", "<tab><tab><s-tab><enter>": "s2",
		"PARS<enter>": "s1", "第二<enter>": "s2", "the mend<enter>": "s1", "s4<enter>": "s4",
		"3<enter>": "s3", "2<bs>3<enter>": "s3", "xyz<c-u><down><enter>": "s2", "mend xyz<c-w><enter>": "s1", "<paste:print\r3><enter>": "s3",
		"<down><down>long<enter>": "s4", "<end><enter>": "s4", "<end><home><enter>": "s1",
		"xyz<enter>": "", "<esc>": "left", "a<esc>": "left", "<c-c>": "interrupted", "<c-d>": "end",
	} {
		p, got := sessions(), ""
		for rest := script; rest != ""; {
			key, after := RuneKey([]rune(rest)[0]), string([]rune(rest)[1:])
			if name, tail, ok := strings.Cut(rest, ">"); strings.HasPrefix(rest, "<") && ok {
				after = tail
				if text, pasted := strings.CutPrefix(name, "<paste:"); pasted {
					p.Paste(text)
					rest = after
					continue
				}
				key = keyOf(t, name[1:])
			}
			rest = after
			switch a := p.HandleKey(key); a.Kind {
			case Submit:
				got = a.Text
			case Cancel:
				got = "left"
			case Interrupt:
				got = "interrupted"
			case EOF:
				got = "end"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// A list fits whatever terminal there is, and shows what is chosen.
func TestAListFits(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {3, 2}, {12, 3}, {40, 9}, {300, 79}} {
		for moves := range 5 {
			p := sessions()
			p.Paste("")
			for range moves {
				p.View(size[0], size[1])
				p.HandleKey(Key{Name: Down})
			}
			rows, row, col := p.View(size[0], size[1])
			chosen := false
			for _, r := range rows {
				chosen = chosen || strings.HasPrefix(r, ">")
				if cells.Width(r) > size[0] {
					t.Errorf("%v: %q is too wide", size, r)
				}
			}
			if len(rows) > max(2, size[1]) || row != 0 || col >= size[0] || !chosen {
				t.Errorf("%v: %q, cursor %d %d", size, rows, row, col)
			}
		}
	}
}

// What has no room is marked, and how to leave the list is still told.
func TestWhatAListCutsIsMarked(t *testing.T) {
	p := Picker{
		Items: []Item{{Choice: Choice{Text: "2026-11-16 16:41", Note: "tidy up the parser · sess_1794846541_c3f19ad9"}}},
		Help:  "type to search · Up, Down · Enter selects · Esc cancels",
	}
	rows, _, _ := p.View(40, 9)
	if !strings.Contains(rows[1], "tidy up the par") || !strings.HasSuffix(rows[1], "…") || rows[2] != "Up, Down · Enter selects · Esc cancels" {
		t.Errorf("%q", rows)
	}
}

func TestAListIsASCIIWhereTheTerminalIs(t *testing.T) {
	p := Picker{
		Items: []Item{{Choice: Choice{Text: "2026-11-16 16:41", Note: "tidy up the parser, sess_1794846541_c3f19ad9"}}},
		Help:  "type to search, Up, Down, Enter takes it, Esc leaves", Style: Style{ASCII: true},
	}
	rows, _, _ := p.View(40, 9)
	if !strings.HasSuffix(rows[1], " parse...") || rows[2] != "Up, Down, Enter takes it, Esc leaves" {
		t.Errorf("%q", rows)
	}
	e := Editor{Style: Style{ASCII: true}, menu: &menu{choices: []Choice{{Text: strings.Repeat("x", 90)}}}}
	if rows, _, _ := e.View(40); !strings.Contains(rows[1], "x...x") || cells.Width(rows[1]) > 40 {
		t.Errorf("%q", rows)
	}
	e = Editor{menu: &menu{choices: []Choice{{Text: "/model", Note: "list the models, or switch to another"}}}}
	if rows, _, _ := e.View(40); !strings.HasSuffix(rows[1], ", or switch to…") || cells.Width(rows[1]) > 40 {
		t.Errorf("%q", rows)
	}
}

func TestAPickerSaysHowManyOthersThereAre(t *testing.T) {
	p := Picker{Title: "which", Help: "Enter takes it · Esc leaves"}
	for i := range 10 {
		p.Items = append(p.Items, Item{Choice{Text: fmt.Sprint("item ", i)}, fmt.Sprint(i)})
	}
	for height, want := range map[int]string{6: "… +6 · Enter takes it · Esc leaves", 20: "Enter takes it · Esc leaves"} {
		rows, _, _ := p.View(40, height)
		if !slices.Contains(rows, want) {
			t.Errorf("%d rows: %q, want %q", height, rows, want)
		}
	}
}
