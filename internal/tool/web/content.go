package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/sanitize"
)

const (
	maxChars = 50_000 // of a page in a result
	sniffLen = 512
)

// read makes a result of a response.
func (o Options) read(resp *http.Response, r request) (fetchResult, error) {
	v := fetchResult{OK: resp.StatusCode < http.StatusBadRequest, URL: r.url.String(), Status: resp.StatusCode}
	if !v.OK {
		v.Error = strings.TrimSpace(fmt.Sprintf("%d %s", v.Status, http.StatusText(v.Status)))
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return v, fmt.Errorf("the server packed the page as %.40q, which cannot be unpacked", enc)
	}
	limit := o.MaxText
	if r.size > 0 {
		limit = min(limit, r.size)
	}
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(resp.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return v, fmt.Errorf("read: %w", err)
	}
	head = head[:n]
	kind, params := contentType(resp.Header.Get("Content-Type"), head)
	v.ContentType = kind
	switch {
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return o.image(v, resp, head)
	case !textual(kind):
		return v, fmt.Errorf("it is no text, but %s%s", kind, sizeOf(resp))
	}
	return v.text(resp, head, limit, params["charset"], r)
}

// contentType is what the server says, or failing that what it looks like.
func contentType(header string, head []byte) (string, map[string]string) {
	kind, params, err := mime.ParseMediaType(header)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || kind == "" || kind == "application/octet-stream" {
		kind, params, _ = mime.ParseMediaType(http.DetectContentType(head))
	}
	return sanitize.Line(kind, maxTitle), params
}

// textual reports whether a type can be read as text.
func textual(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml") {
		return true
	}
	switch strings.TrimPrefix(kind, "application/") {
	case "json", "xml", "javascript", "ecmascript", "x-javascript", "typescript", "yaml", "x-yaml", "toml", "graphql", "sql",
		"x-sh", "x-ndjson", "ndjson", "jsonl", "x-www-form-urlencoded", "x-httpd-php", "x-tex", "manifest":
		return true
	}
	return false
}

func sizeOf(resp *http.Response) string {
	if resp.ContentLength < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d bytes", resp.ContentLength)
}

// image hands a picture to a model that sees, and tells any other of it.
func (o Options) image(v fetchResult, resp *http.Response, head []byte) (fetchResult, error) {
	data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), resp.Body), int64(o.MaxImage)+1))
	if err != nil {
		return v, fmt.Errorf("read: %w", err)
	}
	v.Size = len(data)
	kind := http.DetectContentType(data) // whatever the server calls it
	switch {
	case v.Size > o.MaxImage:
		return v, fmt.Errorf("the image is larger than %d bytes", o.MaxImage)
	case !o.Vision:
		v.note("this is an image, which this model cannot be shown")
	case !slices.Contains(pictures, kind):
		v.note("this is an image of a kind that models cannot be shown")
	default:
		v.images = []chat.Image{{MediaType: kind, Data: data}}
		v.note("the picture follows")
	}
	return v, nil
}

// pictures are the types of images that models take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// text reads the rest of the body and makes text of all of it.
func (v fetchResult) text(resp *http.Response, head []byte, limit int, charset string, r request) (fetchResult, error) {
	body, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), resp.Body), int64(limit)+1))
	if err != nil {
		return v, fmt.Errorf("read: %w", err)
	}
	if len(body) > limit {
		body, v.Truncated = body[:limit], true
		v.note(fmt.Sprintf("only the first %d bytes were read", limit))
	}
	v.Size = len(body)
	markup := v.ContentType == "text/html" || v.ContentType == "application/xhtml+xml"
	if v.Truncated {
		body = wholeRunes(body)
	}
	text, remark := decode(body, charset, markup || strings.HasSuffix(v.ContentType, "xml"))
	if strings.ContainsRune(text[:min(len(text), sniffLen)], 0) {
		return v, fmt.Errorf("it is called %s, but is binary%s", v.ContentType, sizeOf(resp))
	}
	v.note(remark)
	if markup && r.format != "html" {
		p := readable(text, resp.Request.URL, r.format == "markdown")
		text, v.Title = p.text, p.title
		if p.cut {
			v.Truncated = true
			v.note("the page is too long to be shown to its end")
		}
	} else {
		text = sanitize.Text(text)
	}
	v.Content, v.NextOffset = cut(text, r.offset, maxChars)
	v.Truncated = v.Truncated || v.NextOffset > 0
	return v, nil
}

// cut is n characters of text from an offset, and the offset of what follows,
// zero if nothing does.
func cut(text string, offset, n int) (part string, next int) {
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
