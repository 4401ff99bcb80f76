package files_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

// A call that cannot be planned still says which file it is about.
func TestWhatCannotBePlannedNamesItsFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	edit, write, patch := files.Edit(ws, &files.SeenFiles{}), files.Write(ws, &files.SeenFiles{}), files.Patch(ws, &files.SeenFiles{})
	for _, tt := range []struct {
		of         tool.Tool
		args, want string
	}{
		{edit, `{"path":"a.txt","old_string":"nowhere","new_string":"x"}`, "a.txt"},
		{edit, `{"path":"none.txt","old_string":"a","new_string":"b"}`, "none.txt"},
		{write, `{"path":"../out.txt","content":"x"}`, "../out.txt"},
		{patch, `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n"}`, "a.txt"},
		{patch, `{"patch":"--- a/none.txt\n+++ b/none.txt\n@@ -1 +1 @@\n-two\n+three\n"}`, "none.txt"},
		{patch, `{"patch":"no patch"}`, ""},
		{edit, `{"path":7}`, ""},
	} {
		if _, err := tt.of.Prepare(t.Context(), json.RawMessage(tt.args)); err == nil || tool.ErrorTitle(err) != tt.want {
			t.Errorf("%s: about %q, want %q (%v)", tt.args, tool.ErrorTitle(err), tt.want, err)
		}
	}
}
