package files_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

func TestPictures(t *testing.T) {
	var pic bytes.Buffer
	if err := png.Encode(&pic, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	put(t, dir+"/p.txt", pic.String()) // known by its content, not its name
	put(t, dir+"/big.jpg", "\xff\xd8\xff"+strings.Repeat("x", 6<<20))
	blind, seeing := files.All(ws, files.Options{})[0], files.All(ws, files.Options{Vision: true})[0]
	read := func(tl tool.Tool, path string) (tool.Result, error) {
		c, err := tl.Prepare(t.Context(), args("path", path))
		if err != nil {
			t.Fatal(err)
		}
		return c.Run(t.Context(), io.Discard)
	}
	if _, err := read(blind, "p.txt"); err == nil || !strings.Contains(err.Error(), "image (image/png") {
		t.Errorf("a model that does not see: %v", err)
	}
	r, err := read(seeing, "p.txt")
	if err != nil || len(r.Images) != 1 || r.Images[0].MediaType != "image/png" || !bytes.Equal(r.Images[0].Data, pic.Bytes()) {
		t.Fatalf("read = %+v, %v", r.Value, err)
	}
	if b, _ := json.Marshal(r.Value); !strings.Contains(string(b), `"media_type":"image/png"`) || !strings.Contains(string(b), fmt.Sprintf(`"size":%d`, pic.Len())) {
		t.Errorf("value %s", b)
	}
	if _, err := read(seeing, "big.jpg"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a large picture: %v", err)
	}
	for name, head := range map[string]string{"image/gif": "GIF89a", "image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/jpeg": "\xff\xd8\xff\xe0"} {
		put(t, dir+"/x", head+"rest")
		if r, err := read(seeing, "x"); err != nil || r.Images[0].MediaType != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A PDF is read by the reader that the program was given, and by none of our own.
func TestPDF(t *testing.T) {
	text, failure := "", error(nil)
	reader := func(_ context.Context, pdf []byte) (string, error) {
		if !bytes.Contains(pdf, []byte("%PDF-")) {
			t.Errorf("the reader got %q", pdf)
		}
		return text, failure
	}
	with, dir := openWith(t, files.Options{PDF: reader})
	without, bare := open(t)
	for _, content := range []string{"%PDF-1.7\nbody", "\x1b%-12345X@PJL\xff\n%PDF-1.7\nbody"} {
		put(t, dir+"/f.pdf", content)
		put(t, bare+"/f.pdf", content)
		text, failure = "Hello\nworld\n", nil
		if o := must(t, with, "read", "path", "f.pdf"); o.Content != text || !strings.Contains(o.Note, "PDF") {
			t.Errorf("read = %q, note %q", o.Content, o.Note)
		}
		text, failure = "", errors.New("encrypted")
		refused(t, with, "read", []any{"path", "f.pdf"}, "f.pdf", "PDF", "encrypted")
		refused(t, without, "read", []any{"path", "f.pdf"}, "f.pdf", "PDF", "pdftotext")
	}
	put(t, dir+"/f.txt", "a PDF begins with\n%PDF-1.7\nand so on\n")
	if o := must(t, with, "read", "path", "f.txt"); o.Note != "" || !strings.Contains(o.Content, "and so on") {
		t.Errorf("%+v", o)
	}
}

func TestNotebook(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/n.ipynb", `{"cells":[
		{"cell_type":"markdown","source":["# Title\n","text"]},
		{"cell_type":"code","source":"print(1)\n","outputs":[{"output_type":"stream","text":["1\n"]},{"output_type":"display_data","data":{"image/png":"AAAA"}},{"output_type":"error","ename":"E","evalue":"bad"}]},
		{"cell_type":"code","source":"x","outputs":[{"data":{"text/plain":["`+strings.Repeat("9\\n", 100)+`"]}}]}],"nbformat":4}`)
	o := must(t, tools, "read", "path", "n.ipynb")
	want := "[1] markdown\n# Title\ntext\n\n[2] code\nprint(1)\n[2] output\n1\n[2] output\n(not text)\n[2] output\nE: bad\n\n[3] code\nx\n[3] output\n" + strings.Repeat("9\n", 20) + "…\n\n"
	if o.Content != want || !strings.Contains(o.Note, "notebook") {
		t.Errorf("read = %q, note %q", o.Content, o.Note)
	}
	if o := must(t, tools, "read", "path", "n.ipynb", "offset", -3, "limit", 2); o.Content != "9\n…\n" {
		t.Errorf("its end = %q", o.Content)
	}
	put(t, dir+"/broken.ipynb", "{ not a notebook\n")
	if o := must(t, tools, "read", "path", "broken.ipynb"); o.Content != "{ not a notebook\n" {
		t.Errorf("a broken one = %q", o.Content)
	}
}

// The content the model knows is what counts, not the time of the file.
func TestTouchedFileIsNotChanged(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	must(t, tools, "read", "path", "f")
	put(t, dir+"/f", "a\n")
	must(t, tools, "edit", "path", "f", "old_string", "a", "new_string", "b")
	put(t, dir+"/f", "c\n") // as long as before, and perhaps at the same moment
	refused(t, tools, "edit", []any{"path", "f", "old_string", "c", "new_string", "d"}, "changed on disk", "-b", "+c")
}

func TestWhatTheModelKnowsIsBounded(t *testing.T) {
	tools, dir := open(t)
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 9000) // 900 kB
	for i := range 30 {
		put(t, fmt.Sprintf("%s/f%d", dir, i), text)
		must(t, tools, "read", "path", fmt.Sprintf("f%d", i), "limit", 1)
	}
	put(t, dir+"/f0", text+"more\n")
	put(t, dir+"/f29", text+"more\n")
	refused(t, tools, "write", []any{"path", "f0", "content", "x"}, "changed on disk") // its content is forgotten, not its state
	refused(t, tools, "write", []any{"path", "f29", "content", "x"}, "changed on disk", "+more")
	if _, err := call(t, tools, "write", "path", "f0", "content", "x"); err == nil || strings.Contains(err.Error(), "+more") {
		t.Errorf("the first of many is still kept: %v", err)
	}
}
