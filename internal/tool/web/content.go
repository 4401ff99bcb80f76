package web

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/lazy"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

const (
	maxChars = 50_000 // of a page in a result
	sniffLen = 512
)

// readResponse turns a response into a result.
func (o Options) readResponse(resp *http.Response, r request) (fetchResult, error) {
	v := fetchResult{OK: resp.StatusCode < http.StatusBadRequest, URL: r.url.String(), Status: resp.StatusCode}
	if !v.OK {
		v.Error = strings.TrimSpace(fmt.Sprintf("%d %s", v.Status, http.StatusText(v.Status)))
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return v, message.Errorf("the server compressed the page as %.40q, which is not supported", enc)
	}
	limit := o.MaxText
	if r.maxSize > 0 {
		limit = min(limit, r.maxSize)
	}
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return v, message.Errorf("while reading: %w", err)
	}
	head = head[:n]
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || kind == "" || kind == "application/octet-stream" {
		kind, params, _ = mime.ParseMediaType(http.DetectContentType(head)) // guess from the content
	}
	kind = sanitize.Line(kind, maxTitle)
	v.ContentType = kind
	switch {
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return o.readImage(v, resp, head)
	case !strings.HasPrefix(kind, "text/") && !strings.HasSuffix(kind, "+json") && !strings.HasSuffix(kind, "+xml") &&
		!strings.HasSuffix(kind, "+yaml") && !slices.Contains(textTypes, strings.TrimPrefix(kind, "application/")):
		return v, message.Errorf("not text, but %s%s", kind, describeSize(resp))
	}
	return v.readText(resp, head, limit, params["charset"], r)
}

// textTypes are application types that are readable as text.
var textTypes = []string{
	"json", "xml", "javascript", "ecmascript", "x-javascript", "typescript", "yaml", "x-yaml", "toml", "graphql", "sql",
	"x-sh", "x-ndjson", "ndjson", "jsonl", "x-www-form-urlencoded", "x-httpd-php", "x-tex", "manifest",
}

func describeSize(resp *http.Response) string {
	if resp.ContentLength < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d bytes", resp.ContentLength)
}

// readImage returns an image for a model with vision, and describes it to any other.
func (o Options) readImage(v fetchResult, resp *http.Response, head []byte) (fetchResult, error) {
	data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), resp.Body), int64(o.MaxImage)+1))
	if err != nil {
		return v, message.Errorf("while reading: %w", err)
	}
	v.Size = len(data)
	kind := http.DetectContentType(data) // whatever type the server claims
	switch {
	case v.Size > o.MaxImage:
		return v, message.Errorf("the image is larger than %d bytes", o.MaxImage)
	case !o.Vision:
		v.Note = tool.JoinNotes(v.Note, "this is an image, which this model cannot be shown")
	case !slices.Contains(imageTypes, kind):
		v.Note = tool.JoinNotes(v.Note, "this is an image of a kind that models cannot be shown")
	default:
		v.images = []chat.Image{{MediaType: kind, Data: data}}
		v.Note = tool.JoinNotes(v.Note, "the picture follows")
	}
	return v, nil
}

// imageTypes are the image types that models support.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// readText reads the rest of the body and decodes all of it.
func (v fetchResult) readText(resp *http.Response, head []byte, limit int, charset string, r request) (fetchResult,
	error) {
	body, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), resp.Body), int64(limit)+1))
	if err != nil {
		return v, message.Errorf("while reading: %w", err)
	}
	if len(body) > limit {
		body, v.Truncated = body[:limit], true
		v.Note = tool.JoinNotes(v.Note, fmt.Sprintf("only the first %d bytes were read", limit))
	}
	v.Size = len(body)
	markup := v.ContentType == "text/html" || v.ContentType == "application/xhtml+xml"
	if v.Truncated {
		body = wholeRunes(body)
	}
	text, remark := decode(body, charset, markup || strings.HasSuffix(v.ContentType, "xml"))
	if strings.ContainsRune(text[:min(len(text), sniffLen)], 0) {
		return v, message.Errorf("the type is %s, but the content is binary%s", v.ContentType, describeSize(resp))
	}
	v.Note = tool.JoinNotes(v.Note, remark)
	if markup && r.format != "html" {
		p := convertPage(text, resp.Request.URL, r.format == "markdown")
		text, v.Title = p.text, p.title
		if p.truncated {
			v.Truncated = true
			v.Note = tool.JoinNotes(v.Note, "the page is too long to be shown to its end")
		}
	} else {
		text = sanitize.Text(text)
	}
	v.Content, v.NextOffset = sliceChars(text, r.offset, maxChars)
	v.Truncated = v.Truncated || v.NextOffset > 0
	return v, nil
}

// sliceChars returns n characters of text from an offset, and the offset of the rest, or zero if there is none.
func sliceChars(text string, offset, n int) (part string, next int) {
	from, count := len(text), 0
	for i := range text {
		if count == offset {
			from = i
		}
		if count == offset+n {
			return text[from:i], count
		}
		count++
	}
	return text[from:], 0
}

// encodingPattern matches the encoding that a document declares near its beginning. It is compiled on first
// use: compiling is expensive, and most sessions never fetch anything.
var encodingPattern = lazy.Regexp(`(?i)(?:<meta[^>]{0,200}charset\s*=|<\?xml[^>]{0,100}encoding\s*=)\s*["']?\s*([a-z0-9_:.-]{1,40})`)

// maxDeclaration is how much of a document is searched for its encoding.
const maxDeclaration = 2048

// decode decodes a body, and returns a remark about guesses and replacements. A byte order mark takes
// precedence over the server's charset, and that over the document's.
func decode(body []byte, charset string, markup bool) (text, remark string) {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return string(body[3:]), ""
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return decodeUTF16(body[2:], binary.LittleEndian), ""
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return decodeUTF16(body[2:], binary.BigEndian), ""
	}
	if charset == "" && markup {
		if m := encodingPattern().FindSubmatch(body[:min(len(body), maxDeclaration)]); m != nil {
			charset = string(m[1])
		}
	}
	charset = strings.ToLower(strings.TrimSpace(charset))
	switch charset {
	case "utf-8", "utf8", "us-ascii", "ascii":
		if charset[0] == 'u' && charset[1] == 't' || utf8.Valid(body) {
			return string(body), ""
		}
		return decodeLatin(body), ""
	case "":
		if utf8.Valid(body) {
			return string(body), ""
		}
		return decodeLatin(body), "its encoding is not named; it was read as windows-1252"
	case "iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "windows-1252", "cp1252":
		return decodeLatin(body), ""
	case "utf-16", "utf-16le":
		return decodeUTF16(body, binary.LittleEndian), ""
	case "utf-16be":
		return decodeUTF16(body, binary.BigEndian), ""
	}
	// but is ASCII
	shifts := strings.HasPrefix(charset, "iso-2022-") || charset == "csiso2022jp" || strings.HasPrefix(charset, "hz")
	// which is common
	if utf8.Valid(body) && !shifts {
		return string(body), ""
	}
	if known := findEncoding(charset); known != nil {
		if text, err := known.NewDecoder().Bytes(body); err == nil {
			return string(text), ""
		}
	}
	var b strings.Builder // every run of other bytes becomes one mark
	b.Grow(len(body))
	other := false
	for _, c := range body {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else if !other {
			b.WriteRune(utf8.RuneError)
		}
		other = c >= utf8.RuneSelf
	}
	return b.String(), "its encoding, " + sanitize.Line(charset, 40) + ", is unknown; non-ASCII characters were replaced"
}

// wholeRunes returns body without an incomplete rune at its end.
func wholeRunes(body []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(body); i++ {
		if end := body[len(body)-i:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				body = body[:len(body)-i]
			}
			break
		}
	}
	return body
}

// windows1252 has the runes of the bytes 0x80 to 0x9f; all others are as in Unicode.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

func decodeLatin(body []byte) string {
	text := make([]rune, len(body))
	for i, c := range body {
		if text[i] = rune(c); c >= 0x80 && c < 0xa0 {
			text[i] = windows1252[c-0x80]
		}
	}
	return string(text)
}

func decodeUTF16(body []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = order.Uint16(body[2*i:])
	}
	return string(utf16.Decode(units))
}
