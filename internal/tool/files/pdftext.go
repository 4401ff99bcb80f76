package files

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/ascii85"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/lazy"
)

const (
	maxPDFStream = 16 << 20 // bytes of one stream, unpacked
	maxPDFText   = 4 << 20  // bytes of text
	maxPDFPages  = 5000
)

var (
	errNoPDFText = errors.New("no text could be taken from it; it may hold only pictures, or fonts that do not say what their signs mean. Where pdftotext is installed it is used")
	errLockedPDF = errors.New("it is encrypted, and no text could be taken from it. Where pdftotext is installed it is used, which opens what needs no password")
	objectStart  = lazy.Regexp(`(\d+)[ \t\r\n]+\d+[ \t\r\n]+obj\b`)
)

// pdfText takes the text from a PDF, page by page, without regard to where on
// the page it stands. It knows plain and deflated streams.
func pdfText(ctx context.Context, b []byte) (string, error) {
	d := readPDF(ctx, b)
	var out strings.Builder
	var silent []string
	for i, page := range d.pages() {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		before := out.Len()
		t := &pdfPage{doc: d, out: &out}
		t.enter(page["Resources"])
		t.show(d.contents(page["Contents"]), 0)
		if strings.TrimSpace(out.String()[before:]) == "" {
			silent = append(silent, strconv.Itoa(i+1))
		}
		out.WriteString("\n\f\n")
		if out.Len() > maxPDFText {
			break
		}
	}
	if len(silent) > 0 && len(silent) < len(d.pages()) {
		fmt.Fprintf(&out, "[no text could be taken from page %s]\n", strings.Join(silent, ", "))
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(out.String(), "\ufffd"), "\x00", "")
	text = blankLines().ReplaceAllString(text, "\n\n")
	switch {
	case strings.Trim(text, "\f\n "+unknownText) != "":
	case bytes.Contains(b, []byte("/Encrypt")):
		return "", errLockedPDF
	default:
		return "", errNoPDFText
	}
	text = strings.Trim(text, "\f\n ") + "\n"
	if strings.Contains(text, unknownText) {
		text += "[what could not be read is shown as " + unknownText + "]\n"
	}
	return text, nil
}

var blankLines = lazy.Regexp(`\n[ \n]*\n`)

// pdfDoc is the objects of a PDF by number, and where their streams begin. A
// file that was edited holds old objects before new ones: the last one counts.
type pdfDoc struct {
	objects map[int]any
	places  map[int]int    // where in the file each stands
	streams map[int][]byte // raw
	budget  int            // bytes that may still be unpacked
	cmaps   map[pdfRef]*cmap
}

// readPDF finds the objects by looking for them, which works for damaged files
// too; the table of where they are is not needed.
func readPDF(ctx context.Context, b []byte) *pdfDoc {
	d := &pdfDoc{objects: map[int]any{}, places: map[int]int{}, streams: map[int][]byte{}, budget: 8 * maxPDFStream, cmaps: map[pdfRef]*cmap{}}
	for at := 0; ctx.Err() == nil; {
		m := objectStart().FindSubmatchIndex(b[at:])
		if m == nil {
			break
		}
		n, _ := strconv.Atoi(string(b[at+m[2] : at+m[3]]))
		l := &pdfLexer{b: b, at: at + m[1]}
		v, _ := l.value(0)
		d.objects[n], d.places[n] = v, at+m[0]
		delete(d.streams, n)
		l.space()
		if l.ahead("stream") {
			l.at += len("stream")
			d.streams[n] = streamBytes(b[l.at:], d.number(dictOf(v)["Length"]))
			l.at += len(d.streams[n])
		}
		at = max(l.at, at+m[1])
	}
	for _, n := range slices.SortedFunc(maps.Keys(d.streams), func(a, b int) int { return d.places[a] - d.places[b] }) {
		dict := dictOf(d.objects[n])
		if dict["Type"] != pdfName("ObjStm") {
			continue
		}
		b := d.unpack(n)
		first := d.number(dict["First"])
		head := &pdfLexer{b: b[:min(max(first, 0), len(b))]}
		for range d.number(dict["N"]) {
			num, ok1 := head.value(0)
			off, ok2 := head.value(0)
			i, isNum := num.(float64)
			o, isOff := off.(float64)
			if !ok1 || !ok2 || !isNum || !isOff || o < 0 || first+int(o) > len(b) || first+int(o) < 0 {
				break
			}
			l := &pdfLexer{b: b, at: first + int(o)}
			if _, known := d.objects[int(i)]; !known || d.places[int(i)] < d.places[n] {
				d.objects[int(i)], _ = l.value(0)
				d.places[int(i)] = d.places[n]
			}
		}
	}
	return d
}

// streamBytes is the data of a stream. The length it gives may be wrong.
func streamBytes(b []byte, length int) []byte {
	if bytes.HasPrefix(b, []byte("\r\n")) {
		b = b[2:]
	} else if len(b) > 0 && (b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	if length > 0 && length <= len(b) && bytes.HasPrefix(bytes.TrimLeft(b[length:], "\r\n "), []byte("endstream")) {
		return b[:length]
	}
	if i := bytes.Index(b, []byte("endstream")); i >= 0 {
		return b[:i]
	}
	return b
}

// unpack is the data of an object's stream, nil if we cannot unpack it.
func (d *pdfDoc) unpack(n int) []byte {
	data := d.streams[n]
	for _, filter := range d.list(dictOf(d.objects[n])["Filter"]) {
		var r io.Reader
		switch d.get(filter) {
		case pdfName("FlateDecode"), pdfName("Fl"):
			z, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil
			}
			r = z
		case pdfName("ASCII85Decode"), pdfName("A85"):
			data, _, _ = bytes.Cut(data, []byte("~>"))
			r = ascii85.NewDecoder(bytes.NewReader(data))
		case pdfName("ASCIIHexDecode"), pdfName("AHx"):
			r = bytes.NewReader((&pdfLexer{b: append([]byte("<"), data...)}).hex())
		default:
			return nil
		}
		data, _ = io.ReadAll(io.LimitReader(r, int64(min(maxPDFStream, max(d.budget, 0))))) // a damaged end is no loss
		d.budget -= len(data)
	}
	return data
}

// get is what a value is once a reference is followed.
func (d *pdfDoc) get(v any) any {
	for range pdfDepth {
		ref, ok := v.(pdfRef)
		if !ok {
			return v
		}
		v = d.objects[int(ref)]
	}
	return nil
}

func dictOf(v any) pdfDict { d, _ := v.(pdfDict); return d }

func (d *pdfDoc) dict(v any) pdfDict { return dictOf(d.get(v)) }

func (d *pdfDoc) number(v any) int { n, _ := d.get(v).(float64); return int(n) }

// list is an array, or a single value as an array of one.
func (d *pdfDoc) list(v any) []any {
	switch v := d.get(v).(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// pages lists the pages in their order.
func (d *pdfDoc) pages() (list []pdfDict) {
	seen := map[pdfRef]bool{}
	var walk func(v any, resources any)
	walk = func(v, resources any) {
		if ref, ok := v.(pdfRef); ok {
			if seen[ref] || len(list) >= maxPDFPages {
				return
			}
			seen[ref] = true
		}
		node := d.dict(v)
		if node == nil {
			return
		}
		if node["Resources"] == nil && resources != nil {
			node["Resources"] = resources
		}
		if node["Kids"] == nil {
			list = append(list, node)
			return
		}
		for _, kid := range d.list(node["Kids"]) {
			if _, ok := kid.(pdfRef); ok {
				walk(kid, node["Resources"])
			}
		}
	}
	root, at := pdfDict(nil), -1
	for n, v := range d.objects {
		if dict := dictOf(v); dict["Type"] == pdfName("Catalog") && d.places[n] > at {
			root, at = dict, d.places[n]
		}
	}
	walk(root["Pages"], nil)
	return list
}

// contents is what a page draws.
func (d *pdfDoc) contents(v any) (all []byte) {
	refs, ok := v.([]any)
	if !ok {
		refs = []any{v}
		if list, ok := d.get(v).([]any); ok {
			refs = list
		}
	}
	for _, r := range refs {
		if ref, ok := r.(pdfRef); ok {
			all = append(append(all, d.unpack(int(ref))...), '\n')
		}
		if len(all) > maxPDFStream {
			break
		}
	}
	return all
}

// pdfPage is a page whose text is being taken.
type pdfPage struct {
	doc   *pdfDoc
	fonts map[pdfName]*cmap
	forms pdfDict // what may be drawn in the middle
	font  *cmap
	out   *strings.Builder
	line  bool    // something was written on the line
	y     float64 // where the line is, as the last matrix said
}

// enter makes resources the ones that names stand for, and says for each font
// among them how to read its codes.
func (p *pdfPage) enter(resources any) {
	p.fonts, p.forms = make(map[pdfName]*cmap), p.doc.dict(p.doc.dict(resources)["XObject"])
	for name, v := range p.doc.dict(p.doc.dict(resources)["Font"]) {
		font := p.doc.dict(v)
		m := &cmap{wide: font["Subtype"] == pdfName("Type0")}
		if name, ok := p.doc.get(font["Encoding"]).(pdfName); ok {
			m.ucs = m.wide && (strings.Contains(string(name), "UCS2") || strings.Contains(string(name), "UTF16"))
		}
		if !m.wide {
			m.text = p.doc.encoding(font["Encoding"])
		}
		if ref, ok := font["ToUnicode"].(pdfRef); ok {
			if p.doc.cmaps[ref] == nil {
				p.doc.cmaps[ref] = readCMap(p.doc.unpack(int(ref)), m.wide)
			}
			m = p.doc.cmaps[ref]
		}
		p.fonts[name] = m
	}
}

// maxForms is how deep forms may be drawn within forms.
const maxForms = 8

// draw shows a form: a part of a page that is kept apart.
func (p *pdfPage) draw(name pdfName, depth int) {
	ref, ok := p.forms[name].(pdfRef)
	form := p.doc.dict(ref)
	if !ok || depth >= maxForms || form["Subtype"] != pdfName("Form") {
		return
	}
	fonts, forms, font := p.fonts, p.forms, p.font
	if form["Resources"] != nil {
		p.enter(form["Resources"])
	}
	p.newline()
	p.show(p.doc.unpack(int(ref)), depth+1)
	p.newline()
	p.fonts, p.forms, p.font = fonts, forms, font
}

// wordGap is how far apart, in thousandths of the font size, letters stand that
// do not belong to one word.
const wordGap = -200

// show goes through the operators of a page and writes the text they show.
func (p *pdfPage) show(content []byte, depth int) {
	for word, args := range pdfOperators(content) {
		if p.out.Len() > maxPDFText {
			return
		}
		switch word {
		case "Do":
			if len(args) > 0 {
				name, _ := args[0].(pdfName)
				p.draw(name, depth)
			}
		case "Tf":
			if len(args) >= 2 {
				name, _ := args[len(args)-2].(pdfName)
				p.font = p.fonts[name]
			}
		case "Tj", "TJ":
			p.write(args)
		case "'", "\"":
			p.newline()
			p.write(args)
		case "T*", "TD", "ET":
			p.newline()
		case "Tm":
			y, ok := 0.0, false
			if len(args) > 0 {
				y, ok = args[len(args)-1].(float64)
			}
			if !ok || y != p.y || !p.line {
				p.newline()
			} else {
				p.out.WriteString(" ")
			}
			p.y = y
		case "Td":
			if len(args) == 2 && args[1] != 0.0 {
				p.newline()
			} else if p.line {
				p.out.WriteString(" ")
			}
		}
	}
}

// pdfOperators yields the words of a stream, each with the values before it,
// which hold until the next.
func pdfOperators(content []byte) iter.Seq2[pdfWord, []any] {
	return func(yield func(pdfWord, []any) bool) {
		l := &pdfLexer{b: content}
		var args []any
		for !l.done() {
			v, ok := l.value(0)
			word, isWord := v.(pdfWord)
			switch {
			case !ok:
				l.at++
			case !isWord:
				args = append(args, v)
			case !yield(word, args):
				return
			default:
				args = args[:0]
			}
		}
	}
}

func (p *pdfPage) newline() {
	if p.line {
		p.out.WriteString("\n")
		p.line = false
	}
}

// write shows strings; a large gap between two of them is a space.
func (p *pdfPage) write(args []any) {
	for _, a := range args {
		switch a := a.(type) {
		case []byte:
			p.out.WriteString(p.font.decode(a))
			p.line = true
		case []any:
			p.write(a)
		case float64:
			if a < wordGap {
				p.out.WriteString(" ")
			}
		}
	}
}
