package paths

import "testing"

func TestPathsStandForEachOther(t *testing.T) {
	m := Map{"/home/ada/shop": "<workspace>", "/home/ada": "<home>", ".coder/runs/s": ".coder/runs/t", "/": "root", "": "none"}
	for text, want := range map[string]string{
		"/home/ada/shop":              "<workspace>",
		"in /home/ada/shop/a.txt now": "in <workspace>/a.txt now",
		"/home/ada/shop-2/a.txt":      "<home>/shop-2/a.txt",
		`"cd /home/ada/shop && ls"`:   `"cd <workspace> && ls"`,
		"/home/ada/shop:/home/ada":    "<workspace>:<home>",
		"gcc -I/home/ada/shop/x":      "gcc -I<workspace>/x",
		"/home/adam":                  "/home/adam",
		"/home/adaé":                  "/home/adaé",
		"see .coder/runs/s/x":         "see .coder/runs/t/x",
		"see x.coder/runs/s/x":        "see x.coder/runs/s/x",
		"nothing / here":              "nothing / here",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestPathsInJSONAreReplacedInItsStrings(t *testing.T) {
	m := Map{"/ws": `C:\"x"`}
	for text, want := range map[string]string{
		`{"at":"/ws/a"}`: `{"at":"C:\\\"x\"/a"}`, `{"at":"/wsx"}`: `{"at":"/wsx"}`, "/ws": `C:\"x"`, `{no /ws`: `{no C:\"x"`,
	} {
		if got := m.Value(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	if got := string(m.JSON([]byte("no /ws"))); got != "no /ws" {
		t.Errorf("what is no JSON becomes %s", got)
	}
}
