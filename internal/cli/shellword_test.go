package cli

import "testing"

// The last word of a shell line goes on to a file's name as it was begun.
func TestTheLastWordOfAShellLineGoesOnAsItWasBegun(t *testing.T) {
	getenv := func(name string) string {
		if name == "HOME" {
			return "/home/me"
		}
		return ""
	}
	for _, tt := range []struct{ line, text, name, want string }{
		{"!cat no", "no", "notes.txt", "notes.txt "},
		{"!no", "no", "notes.txt", "notes.txt "},
		{"!!no", "no", "notes.txt", "notes.txt "},
		{`!cat my\ no`, "my no", "my notes", `my\ notes `},
		{`!cat "my no`, "my no", "my notes", `"my notes" `},
		{`!cat 'it`, "it", "it's", `'it'\''s' `},
		{`!cat "a/b c/my`, "a/b c/my", `my "$x"`, `"a/b c/my \"\$x\"" `},
		{`!cat 'a b'/my`, "a b/my", "my notes", `'a b'/my\ notes `},
		{`!cat a/"my`, "a/my", "my notes", `a/"my notes" `},
		{"!grep x <no", "no", "notes.txt", "notes.txt "},
		{"!ls >>no", "no", "notes.txt", "notes.txt "},
		{"!ls|no", "no", "notes.txt", "notes.txt "},
		{"!x --file=no", "no", "notes.txt", "notes.txt "},
		{"!ls $HOME/no", "/home/me/no", "notes.txt", "$HOME/notes.txt "},
		{`!ls "${HOME}/no`, "/home/me/no", "notes.txt", `"${HOME}/notes.txt" `},
		{"!ls ~/no", "~/no", "notes.txt", "~/notes.txt "},
		{"!ls ", "", "notes.txt", "notes.txt "},
		{`!ls "a" `, "", "notes.txt", "notes.txt "},
	} {
		w := parseLastShellWord(tt.line, getenv)
		if w.text != tt.text {
			t.Errorf("%s: read as %q, want %q", tt.line, w.text, tt.text)
		}
		if got := w.complete(tt.name, false); got != tt.want {
			t.Errorf("%s goes on to %s as %s, want %s", tt.line, tt.name, got, tt.want)
		}
	}
	if got := parseLastShellWord(`!cd "my`, getenv).complete("my files", true); got != `"my files/` {
		t.Errorf("a folder is completed as %s", got)
	}
}
