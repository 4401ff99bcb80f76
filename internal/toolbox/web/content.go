package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"coder/internal/textsafe"
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
	return textsafe.Line(kind, maxTitle), params
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

// image tells of an image without showing it.
func (o Options) image(v fetchResult, resp *http.Response, head []byte) (fetchResult, error) {
	n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, int64(o.MaxImage-len(head)+1)))
	if err != nil {
		return v, fmt.Errorf("read: %w", err)
	}
	if v.Size = len(head) + int(n); v.Size > o.MaxImage {
		return v, fmt.Errorf("the image is larger than %d bytes", o.MaxImage)
	}
	v.note("this is an image, which cannot be shown here")
	return v, nil
}

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
		text = textsafe.Text(text)
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
