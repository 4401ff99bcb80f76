package files_test

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
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
	blind, seeing := files.With(ws, files.Options{})[0], files.With(ws, files.Options{Vision: true})[0]
	read := func(tl tool.Tool, path string) (tool.Result, error) {
		c, err := tl.Prepare(t.Context(), args("path", path))
		if err != nil {
			t.Fatal(err)
		}
		return c.Run(t.Context(), io.Discard)
	}
	if _, err := read(blind, "p.txt"); err == nil || !strings.Contains(err.Error(), "picture (image/png") {
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

func deflate(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	w.Close()
	return b.String()
}

// pdf makes a document of objects, the first of which is its catalog.
func pdf(objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	b.WriteString("trailer << /Root 1 0 R >>\n%%EOF\n")
	return b.String()
}

func stream(dict, data string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(data), data)
}

func TestPDF(t *testing.T) {
	tools, dir := open(t)
	const catalog, pages = "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] /Resources << /Font << /F1 5 0 R >> >> >>"
	const page, font = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>", "<< /Type /Font /Subtype /Type1 >>"
	const drawn = "BT /F1 12 Tf 72 700 Td (Hello \\(big\\) w\\157rld) Tj 0 -14 Td [(Sp) -300 (aced) 20 (!)] TJ T* (next) ' ET"
	const want = "Hello (big) world\nSp aced!\nnext\n"
	cmap := "beginbfchar <0001> <0048> <0002> <00E9> endbfchar 1 beginbfrange <0010> <0012> <0061> endbfrange"
	for _, tc := range []struct{ name, text, want string }{
		{"plain", pdf(catalog, pages, page, stream("", drawn), font), want},
		{"deflated", pdf(catalog, pages, page, stream("/Filter /FlateDecode", deflate(drawn)), font), want},
		{"wrong length", pdf(catalog, pages, page, "<< /Length 3 >>\nstream\n"+drawn+"\nendstream", font), want},
		{"several streams", pdf(catalog, pages, "<< /Type /Page /Contents [4 0 R 6 0 R] >>", stream("", "BT (a) Tj ET"), font, stream("", "BT (b) Tj ET")), "a\nb\n"},
		{"to unicode", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf <0001000200100012> Tj ET"), "<< /Type /Font /Subtype /Type0 /ToUnicode 6 0 R >>", stream("/Filter /FlateDecode", deflate(cmap))), "Héac\n"},
		{"edited: a later object", pdf(catalog, pages, page, stream("", "BT (old) Tj ET"), font) + "4 0 obj\n" + stream("", drawn) + "\nendobj\n%%EOF\n", want},
		{"edited: a later catalog", pdf(catalog, pages, page, stream("", "BT (old) Tj ET"), font) + "1 0 obj\n<< /Type /Catalog /Pages 12 0 R >>\nendobj\n12 0 obj\n<< /Kids [13 0 R] >>\nendobj\n13 0 obj\n<< /Type /Page /Contents 14 0 R >>\nendobj\n14 0 obj\n" + stream("", drawn) + "\nendobj\n", want},
		{"edited: in a stream of objects", pdf(catalog, "<< /Kids [3 0 R] >>", "<< /Type /Page /Contents 4 0 R >>", stream("", "BT (old) Tj ET"), font) + "6 0 obj\n" + stream("", drawn) + "\nendobj\n7 0 obj\n" + stream("/Type /ObjStm /N 1 /First 4", "3 0 << /Type /Page /Contents 6 0 R >>") + "\nendobj\n", want},
		{"edited: from a stream of objects", pdf(catalog, "<< /Kids [7 0 R] >>", stream("/Type /ObjStm /N 1 /First 4", "7 0 << /Type /Page /Contents 5 0 R >>"), stream("", drawn), stream("", "BT (old) Tj ET")) + "7 0 obj\n<< /Type /Page /Contents 4 0 R >>\nendobj\n", want},
		{"quotes and dashes", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf (\x93a\x94 \x96 \x80 \xe9) Tj ET"), font), "“a” – € é\n"},
		{"glyphs by name", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf (\x01\x02\x03x) Tj ET"), "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [1 /fi /quoteright /uni4E16] >> >>"), "fi’世x\n"},
		{"as Macs write it", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf (\x8e\xd2) Tj ET"), "<< /Type /Font /Subtype /TrueType /Encoding /MacRomanEncoding >>"), "é“\n"},
		{"wide codes that are the text", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf <4F60597D00200041> Tj ET"), "<< /Type /Font /Subtype /Type0 /Encoding /UniGB-UCS2-H >>"), "你好 A\n"},
		{"wide codes of a font that is not known", pdf(catalog, pages, page, stream("", "BT (Latin) Tj /F1 1 Tf <00010002> Tj ET"), "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H >>"), "Latin\ufffd\ufffd\n[what could not be read is shown as \ufffd]\n"},
		{"glyphs by names that say nothing", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf (a\x01b) Tj ET"), "<< /Type /Font /Subtype /Type3 /Encoding << /Differences [1 /g42 98 /.notdef] >> >>"), "a\ufffd\n[what could not be read is shown as \ufffd]\n"},
		{"something before it", "\x1b%-12345X@PJL\n" + pdf(catalog, pages, page, stream("", drawn), font), want},
		{"a form", pdf(catalog, pages, "<< /Type /Page /Contents 4 0 R /Resources << /XObject << /X1 6 0 R >> >> >>", stream("", "BT (before) Tj ET q /X1 Do Q BT (after) Tj ET"), font, stream("/Subtype /Form /Resources << /Font << /F1 5 0 R >> >>", drawn)), "before\n" + want + "after\n"},
		{"a form within itself", pdf(catalog, pages, "<< /Type /Page /Contents 4 0 R /Resources << /XObject << /X1 6 0 R >> >> >>", stream("", "/X1 Do"), font, stream("/Subtype /Form", "BT (a) Tj ET /X1 Do")), strings.Repeat("a\n", 8)},
		{"words placed one by one", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf 1 0 0 1 10 700 Tm (two) Tj 1 0 0 1 40 700 Tm (words) Tj 1 0 0 1 10 680 Tm (below) Tj ET"), font), "two words\nbelow\n"},
		{"in hexadecimal, deflated", pdf(catalog, pages, page, stream("/Filter [/ASCIIHexDecode /FlateDecode]", fmt.Sprintf("%x>", deflate(drawn))), font), want},
		{"a page that says nothing", pdf(catalog, "<< /Kids [3 0 R 6 0 R] >>", "<< /Type /Page /Contents 4 0 R >>", stream("", "BT (a) Tj ET"), font, "<< /Type /Page /Contents 7 0 R >>", stream("/Filter /LZWDecode", "x")), "a\n\n\f\n\n\f\n[no text could be taken from page 2]\n"},
		{"objects in a stream", pdf(catalog, "<< /Kids [7 0 R] >>", stream("/Type /ObjStm /N 2 /First 8 /Filter /FlateDecode", deflate("9 0 7 3 [] "+page)), stream("", drawn)), want},
	} {
		t.Run(tc.name, func(t *testing.T) {
			put(t, dir+"/f.pdf", tc.text)
			if o := must(t, tools, "read", "path", "f.pdf"); o.Content != tc.want || !strings.Contains(o.Note, "PDF") {
				t.Errorf("read = %q, note %q", o.Content, o.Note)
			}
		})
	}
	put(t, dir+"/f.pdf", pdf(catalog, pages, page, stream("", "q 1 0 0 1 0 0 cm /Im1 Do Q"), font))
	refused(t, tools, "read", []any{"path", "f.pdf"}, "PDF", "no text could be taken")
	put(t, dir+"/f.pdf", pdf(catalog, pages, page, stream("", "BT /F1 1 Tf <0102> Tj ET"), "<< /Type /Font /Subtype /Type0 >>"))
	refused(t, tools, "read", []any{"path", "f.pdf"}, "PDF", "no text could be taken")
	put(t, dir+"/f.pdf", pdf(catalog, pages, page, stream("", "\xff\xfe"), font)+"trailer << /Encrypt 9 0 R >>\n")
	refused(t, tools, "read", []any{"path", "f.pdf"}, "PDF", "encrypted")
	put(t, dir+"/f.txt", "a PDF begins with\n%PDF-1.7\nand so on\n")
	if o := must(t, tools, "read", "path", "f.txt"); o.Note != "" || !strings.Contains(o.Content, "and so on") {
		t.Errorf("%+v", o)
	}
}

func FuzzPDF(f *testing.F) {
	f.Add("1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj 2 0 obj << /Kids [2 0 R 3 0 R] >> endobj 3 0 obj << /Contents 4 0 R >> endobj 4 0 obj << >> stream\nBT (a\\(b) Tj <41> Tj ET\nendstream")
	f.Add("1 0 obj [ << ( < > ] )")
	f.Add("1 0 obj << /Type /ObjStm /First 99999999999 /N 3 >> stream\n1 2 3\nendstream")
	tools, dir := open(f)
	f.Fuzz(func(t *testing.T, text string) {
		put(t, dir+"/f", "%PDF-1.4\n"+text)
		_, _ = call(t, tools, "read", "path", "f") // must not panic or hang
	})
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
