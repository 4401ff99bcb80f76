package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/ui/lineedit"
)

func TestDroppedPaths(t *testing.T) {
	blank := filepath.Join(t.TempDir(), "a b.png")
	if err := os.WriteFile(blank, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"/tmp/a.png":                           {"/tmp/a.png"},
		"'/tmp/a b.png' ":                      {"/tmp/a b.png"},
		`/tmp/a\ b.png "/tmp/c'd.png"`:         {"/tmp/a b.png", "/tmp/c'd.png"},
		"file:///tmp/a%20b.png\r\n/tmp/x/.":    {"/tmp/a b.png", "/tmp/x"},
		"file://localhost/tmp/a":               {"/tmp/a"},
		blank:                                  {blank},
		"file://other/tmp/a":                   nil,
		"/tmp/a.png is broken":                 nil,
		"see /tmp/a.png":                       nil,
		"a.png":                                nil,
		"'/tmp/a":                              nil,
		"":                                     nil,
		strings.Repeat("/a ", maxDroppedBytes): nil,
	} {
		if got := parseDroppedPaths(text); !slices.Equal(got, want) {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

func TestAPastedPictureIsInTheSavedDraft(t *testing.T) {
	home := t.TempDir()
	var line lineedit.Editor
	img := chat.Image{MediaType: "image/gif", Data: []byte("GIF89a one")}
	line.InsertPicture(&lineedit.Picture{Image: img, Name: savePicture(home, img)})
	path, ok := strings.CutPrefix(line.Draft().DiskText(), "@")
	if got, err := os.ReadFile(path); !ok || string(got) != "GIF89a one" {
		t.Errorf("%s: %q, %v", path, got, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode() != 0o600 {
		t.Errorf("others can read it: %v", info.Mode())
	}
	if name := savePicture("", img); name != "" {
		t.Errorf("without a home it is in %q", name)
	}
}
