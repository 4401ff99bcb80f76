package term

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
	"coder/internal/ui/term/ink"
)

// Level is the number of colors that a terminal has.
type Level uint8

// Color levels.
const (
	None       Level = iota // no escape sequences at all
	Basic                   // the sixteen colors of the terminal's theme
	Colour256               // a fixed table of 256
	TrueColour              // 24-bit color
)

// Palette selects the colors. The zero Palette uses none.
//
// coder's own text uses the sixteen colors, which users have chosen for their screens, except with a
// light theme on a terminal with more. Source code uses more where available.
type Palette struct {
	Level  Level
	Light  bool                     // dark text on a light background
	Mono   bool                     // only weight and slant
	Fixed  bool                     // shades for a light background instead of the terminal's own
	Links  bool                     // the terminal supports links
	custom *[len(basicCodes)]string // codes of the colors that the user chose
}

// monoTerminals lists terminals without colors.
var monoTerminals = []string{"dumb", "vt52", "vt100", "vt102", "vt220", "vt320"}

// DetectPalette returns the palette for a terminal, according to the environment. NO_COLOR turns colors
// off, FORCE_COLOR and CLICOLOR_FORCE turn them on. Otherwise there are none with CLICOLOR=0,
// FORCE_COLOR=0, a terminal without colors or no terminal.
func DetectPalette(env func(string) string, tty bool) Palette {
	on := func(name string) bool { return !slices.Contains([]string{"", "0", "false"}, env(name)) }
	off := env("CLICOLOR") == "0" || env("FORCE_COLOR") == "0" || env("FORCE_COLOR") == "false" ||
		slices.Contains(monoTerminals, env("TERM")) || !tty
	if env("NO_COLOR") != "" || off && !on("FORCE_COLOR") && !on("CLICOLOR_FORCE") {
		return Palette{}
	}
	p := Palette{Level: Basic}
	switch colours, term := env("COLORTERM"), env("TERM"); {
	case env("FORCE_COLOR") == "3":
		p.Level = TrueColour
	case env("FORCE_COLOR") == "2":
		p.Level = Colour256
	case colours == "truecolor", colours == "24bit", strings.HasSuffix(term, "-direct"):
		p.Level = TrueColour
	case strings.Contains(term, "256color"):
		p.Level = Colour256
	}
	// The last number of "foreground;background": of the sixteen colors, 7 and 9 to 15 are light.
	shown := env("COLORFGBG")
	n, err := strconv.Atoi(shown[strings.LastIndexByte(shown, ';')+1:])
	p.Light = err == nil && (n == 7 || n >= 9 && n <= 15)
	return p
}

// SupportsLinks reports whether, according to the environment, the terminal is known to support links.
// Others might show the address as garbage.
func SupportsLinks(env func(string) string) bool {
	name, program := env("TERM"), env("TERM_PROGRAM")
	vte, _ := strconv.Atoi(env("VTE_VERSION")) // 0 if invalid
	konsole, _ := strconv.Atoi(env("KONSOLE_VERSION"))
	switch {
	case name == "dumb" || name == "linux":
		return false
	case slices.Contains([]string{"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby", "tmux"}, program):
		return true
	case slices.Contains([]string{"xterm-kitty", "xterm-ghostty", "foot", "foot-extra", "alacritty", "contour",
		"wezterm"}, name):
		return true
	}
	return vte >= 5000 || konsole >= 201200 || env("WT_SESSION") != "" || env("KITTY_WINDOW_ID") != "" ||
		env("DOMTERM") != ""
}

// WithTheme returns the palette for a background: dark, light, or mono for no colors; for any other theme,
// p.
func (p Palette) WithTheme(theme string) Palette {
	switch theme {
	case "dark":
		p.Light, p.Fixed = false, false
	case "light":
		p.Light, p.Fixed = true, true
	case "mono":
		p.Mono = true
	}
	return p
}

// roleNames maps the names in the settings to roles.
var roleNames = map[string]ink.Role{
	"dim": ink.Dim, "tool": ink.Tool, "good": ink.Good, "bad": ink.Bad, "warn": ink.Warn, "done": ink.Done,
	"code": ink.Code, "link": ink.Link,
	"keyword": ink.Keyword, "string": ink.String, "comment": ink.Comment, "number": ink.Number, "name": ink.Name,
}

// WithColours returns the palette with the user's colors by role name: #rrggbb, or the number of one of 256. If
// the terminal has fewer colors, the existing ones stay. The error lists invalid ones; the others apply.
func (p Palette) WithColours(colours map[string]string) (Palette, error) {
	var wrong []error
	own := new([len(basicCodes)]string)
	for _, name := range slices.Sorted(maps.Keys(colours)) {
		role, known := roleNames[name]
		code, err := p.parseColour(colours[name])
		switch {
		case !known:
			wrong = append(wrong, message.Errorf("ui.colors: unknown name %q; use one of %s", name,
				strings.Join(slices.Sorted(maps.Keys(roleNames)), ", ")))
		case err != nil:
			wrong = append(wrong, message.Errorf("ui.colors: %s: %w", name, err))
		default:
			own[role] = code
		}
	}
	p.custom = own
	return p, errors.Join(wrong...)
}

// parseColour returns the code of a color in a setting, empty if the terminal lacks it.
func (p Palette) parseColour(colour string) (string, error) {
	var r, g, b uint8
	if n, err := strconv.Atoi(colour); err == nil && n >= 0 && n <= 255 {
		switch {
		case n < 8:
			return strconv.Itoa(30 + n), nil
		case n < 16:
			return strconv.Itoa(90 + n - 8), nil
		case p.Level < Colour256:
			return "", nil
		}
		return "38;5;" + strconv.Itoa(n), nil
	}
	if n, err := fmt.Sscanf(colour, "#%2x%2x%2x", &r, &g, &b); n != 3 || err != nil || len(colour) != len("#rrggbb") {
		return "", message.Errorf("%q is not a color: use #rrggbb, or a number from 0 to 255", colour)
	}
	switch {
	case p.Level == TrueColour:
		return fmt.Sprintf("38;2;%d;%d;%d", r, g, b), nil
	case p.Level == Colour256: // the nearest in the color cube
		near := func(c uint8) int { return (int(c)*5 + 127) / 255 }
		return fmt.Sprintf("38;5;%d", 16+36*near(r)+6*near(g)+near(b)), nil
	}
	return "", nil
}

// basicCodes lists the codes of the roles in sixteen colors.
var basicCodes = [...]string{
	ink.Plain: "", ink.Dim: "2", ink.Tool: "34", ink.Good: "32", ink.Bad: "31", ink.Warn: "33", ink.Done: "36",
	ink.Code: "36", ink.Link: "2", ink.Keyword: "35", ink.String: "32", ink.Comment: "2", ink.Number: "36", ink.Name: "34",
}

// codeShades lists the colors of source code on richer terminals, for a dark and for a light background: the
// number in the table of 256, and red, green, blue.
var codeShades = map[ink.Role][2]struct{ table, rgb string }{
	ink.Code:    {{"80", "86;182;194"}, {"30", "1;132;148"}},
	ink.Keyword: {{"176", "198;120;221"}, {"127", "166;38;164"}},
	ink.String:  {{"114", "152;195;121"}, {"28", "45;125;50"}},
	ink.Number:  {{"173", "209;154;102"}, {"130", "152;104;1"}},
	ink.Name:    {{"75", "97;175;239"}, {"26", "47;95;208"}},
}

const resetCode = "\x1b[0m"

// styleCode returns the escape sequence that starts l, or "".
func (p Palette) styleCode(l ink.Style) string {
	if p.Level == None || l == (ink.Style{}) {
		return ""
	}
	var codes []string
	if c := p.roleCode(l.Role); c != "" {
		codes = append(codes, c)
	}
	for _, a := range []struct {
		on   bool
		code string
	}{{l.Bold, "1"}, {l.Italic, "3"}, {l.Underline, "4"}, {l.Strike, "9"}} {
		if a.on {
			codes = append(codes, a.code)
		}
	}
	if len(codes) == 0 {
		return ""
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// monoCodes lists the codes of the roles without colors.
var monoCodes = map[ink.Role]string{ink.Dim: "2", ink.Tool: "1", ink.Bad: "1", ink.Warn: "1", ink.Code: "1",
	ink.Link: "2", ink.Comment: "2", ink.Keyword: "1"}

// lightShades lists the colors of coder's own text on a light background.
var lightShades = map[ink.Role]struct{ table, rgb string }{
	ink.Good: {"28", "26;127;55"}, ink.Bad: {"160", "207;34;46"}, ink.Warn: {"130", "154;103;0"},
	ink.Done: {"30", "5;116;130"}, ink.Tool: {"26", "9;105;218"},
}

func (p Palette) roleCode(r ink.Role) string {
	if p.Mono {
		return monoCodes[r]
	}
	if p.custom != nil && p.custom[r] != "" {
		return p.custom[r]
	}
	pair, rich := codeShades[r]
	if own, ok := lightShades[r]; ok && p.Fixed {
		pair[1], rich = own, true
	}
	shade := pair[0]
	if p.Light {
		shade = pair[1]
	}
	switch {
	case rich && p.Level == Colour256:
		return "38;5;" + shade.table
	case rich && p.Level == TrueColour:
		return "38;2;" + shade.rgb
	}
	return basicCodes[r]
}

// Paint returns text in the style of a role, for callers that write their own lines.
func (p Palette) Paint(r ink.Role, text string) string {
	code := p.styleCode(ink.Style{Role: r})
	if code == "" || text == "" {
		return text
	}
	return code + text + resetCode
}
