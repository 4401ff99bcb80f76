package files_test

import (
	"os"
	"strings"
	"testing"
)

// What cannot be read as it is is never shown as if it could, and never written
// in another encoding than it was.
func TestEncodings(t *testing.T) {
	for name, tc := range map[string]struct{ text, say string }{
		"latin1":    {"caf\xe9 cr\xe8me na\xefve \xfcber\n", "Latin-1"},
		"shift-jis": {"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\n", "Shift-JIS"},
		"gbk":       {"\xd6\xd0\xce\xc4\xce\xc4\xb1\xbe\n", "GBK"},
		"cut short": {"plain \xe4", "one byte"},
	} {
		t.Run(name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", tc.text)
			if o := must(t, tools, "read", "path", "f"); !strings.Contains(o.Note, "not valid UTF-8") || !strings.Contains(o.Note, tc.say) {
				t.Errorf("note %q", o.Note)
			}
			refused(t, tools, "write", []any{"path", "f", "content", "x"}, "not UTF-8")
			refused(t, tools, "edit", []any{"path", "f", "old_string", "\ufffd", "new_string", "x"}, "not UTF-8")
			if got := get(t, dir+"/f"); got != tc.text {
				t.Errorf("now %q", got)
			}
		})
	}
	for name, text := range map[string]string{
		"little-endian":            "\xff\xfea\x00\n\x00",
		"big-endian":               "\xfe\xff\x00a\x00\n",
		"little-endian, unmarked":  "a\x00b\x00c\x00\n\x00",
		"big-endian, unmarked":     "\x00a\x00b\x00c\x00\n",
		"marked and without zeros": "\xff\xfe\x2d\x4e\x87\x65",
	} {
		t.Run(name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", text)
			refused(t, tools, "read", []any{"path", "f"}, "UTF-16")
			refused(t, tools, "edit", []any{"path", "f", "old_string", "a", "new_string", "x"}, "UTF-16")
		})
	}
	tools, dir := open(t)
	for name, text := range map[string]string{"elf": "\x7fELF\x02\x01\x01\x00\x00\x00", "zeros": strings.Repeat("\x00", 64), "utf32": "\xff\xfe\x00\x00a\x00\x00\x00"} {
		put(t, dir+"/"+name, text)
		refused(t, tools, "read", []any{"path", name}, "binary")
		refused(t, tools, "edit", []any{"path", name, "old_string", "a", "new_string", "x"}, "binary")
	}
}

// Beside README.md a readme.md may be made where the system can have both, but
// it is hardly what was meant.
func TestNamesThatDifferInCase(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/README.md", "# It\n")
	if _, err := os.Stat(dir + "/readme.md"); err == nil {
		must(t, tools, "edit", "path", "readme.md", "old_string", "It", "new_string", "That")
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Errorf("%v, %v", names, err)
		}
		return
	}
	refused(t, tools, "edit", []any{"path", "readme.md", "old_string", "It", "new_string", "That"}, "does not exist", "README.md")
	if o := must(t, tools, "write", "path", "readme.md", "content", "x"); o.Operation != "created" || !strings.Contains(o.Note, "README.md") {
		t.Errorf("write: %+v", o)
	}
	if o := must(t, tools, "write", "path", "readme.md", "content", "y"); o.Note != "" {
		t.Errorf("the second time: %+v", o)
	}
	if o := must(t, tools, "edit", "path", "Readme.MD", "old_string", "", "new_string", "z"); !strings.Contains(o.Note, "differs only in case") {
		t.Errorf("edit: %+v", o)
	}
	if o := must(t, tools, "patch", "patch", "*** Begin Patch\n*** Add File: ReadMe.md\n+x\n*** Add File: other\n+x\n*** End Patch"); !strings.Contains(o.Files[0].Note, "differs only in case") || o.Files[1].Note != "" {
		t.Errorf("patch: %+v", o)
	}
	if o := must(t, tools, "write", "path", "new/deep/file", "content", "x"); o.Note != "" {
		t.Errorf("in a new directory: %+v", o)
	}
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Update File: other\n*** Move to: Other\n*** End Patch")
	if got := get(t, dir+"/README.md"); got != "# It\n" {
		t.Errorf("README.md is %q", got)
	}
}
