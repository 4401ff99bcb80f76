package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/core/chat"
	"coder/internal/core/message"
	"coder/internal/host/patch"
	"coder/internal/tool"
)

// errEncoding is the error for a file in an unknown encoding, errUTF16 for one in UTF-16. coder never
// writes either: what it cannot read reliably it cannot write back.
var (
	errEncoding = errors.New("the file is not UTF-8; change it with a command that knows its encoding")
	errUTF16    = errors.New("the file is UTF-16 text, which this tool does not handle; convert it to UTF-8 with iconv, or use a command that knows UTF-16")
)

// checkText returns an error for content that is not text.
func checkText(path string, b []byte) error {
	switch {
	case isUTF16(b):
		return message.Errorf("%s: %w", path, errUTF16)
	case bytes.IndexByte(b, 0) >= 0:
		return message.Errorf("%s is a binary file", path)
	case !utf8.Valid(b):
		return message.Errorf("%s: %w", path, errEncoding)
	}
	return nil
}

// isUTF16 reports whether b, all or the beginning of a file, is UTF-16: by its mark, or because every
// other byte is zero, as in Latin text, and no other byte is.
func isUTF16(b []byte) bool {
	const least = 4 // bytes needed without a mark
	b = b[:min(len(b), sniffLen)]
	if bytes.HasPrefix(b, []byte("\xff\xfe")) && !bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")) ||
		bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	var zero [2]int
	for i, c := range b {
		if c == 0 {
			zero[i%2]++
		}
	}
	half := len(b) / 2
	return len(b) >= least && len(b)%2 == 0 && (zero[0] == half && zero[1] == 0 || zero[1] == half && zero[0] == 0)
}

// guessEncoding guesses the encoding of text that is not UTF-8: in Western European encodings, bytes
// beyond ASCII are mostly single ones among letters.
func guessEncoding(b []byte) string {
	alone, together, run := 0, 0, 0
	for i := 0; i <= len(b); i++ {
		switch {
		case i < len(b) && b[i] >= utf8.RuneSelf:
			run++
			continue
		case run == 1:
			alone++
		default:
			together += run
		}
		run = 0
	}
	if together > alone {
		return "GBK, Big5, Shift-JIS, EUC-JP, EUC-KR or an encoding of Cyrillic"
	}
	return "Latin-1 or another encoding of one byte to a character"
}

// MaxImage is the maximum size of an image or a PDF for the model.
const MaxImage = 5 << 20

// imageType returns the media type of a file by its first
// bytes, or "" if it is not an image that models support.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

type imageResult struct {
	OK        bool   `json:"ok"`
	Path      string `json:"path"`
	MediaType string `json:"media_type"`
	Size      int    `json:"size"`
	Note      string `json:"note"`
}

// ParseImage returns data as an image, or an error if models do not support its type or size.
func ParseImage(data []byte) (chat.Image, error) {
	kind := imageType(data)
	switch {
	case kind == "":
		return chat.Image{}, errors.New("not a PNG, JPEG, GIF or WebP image")
	case len(data) > MaxImage:
		return chat.Image{}, message.Errorf("%d bytes are too many: at most %d bytes can be shown", len(data), MaxImage)
	}
	return chat.Image{MediaType: kind, Data: data}, nil
}

// IsImage reports whether a file that begins so is a picture that models take.
func IsImage(head []byte) bool { return imageType(head) != "" }

// checkMedia returns why the model cannot see a type of file, or nil.
func (o Options) checkMedia(mediaType string) error {
	switch {
	case o.CheckMedia != nil:
		return o.CheckMedia(mediaType)
	case !o.Vision || mediaType == chat.PDF:
		return errors.New("this model does not support images")
	}
	return nil
}

// imageResult returns the image for a model with vision, and describes it to any other.
func (s *source) imageResult(mediaType string, o Options) (tool.Result, error) {
	err := o.checkMedia(mediaType)
	if s.size > MaxImage {
		err = cmp.Or(err, message.Errorf("at most %d bytes can be shown", MaxImage))
	}
	if err != nil {
		return tool.Result{}, message.Errorf("%s is an image (%s, %d bytes); %w", s.name, mediaType, s.size, err)
	}
	data, err := s.readAll()
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{
		Value:   imageResult{OK: true, Path: s.name, MediaType: mediaType, Size: len(data), Note: "the picture follows"},
		Images:  []chat.Image{{MediaType: mediaType, Data: data}},
		Summary: fmt.Sprintf("%s, %d bytes", mediaType, len(data)),
	}, nil
}

// These limits apply to a cell's output.
const (
	outputLines = 20
	outputChars = 2000
)

// notebook is the relevant part of a Jupyter notebook.
type notebook struct {
	Cells []struct {
		Type    string   `json:"cell_type"`
		ID      string   `json:"id"`
		Source  cellText `json:"source"`
		Outputs []struct {
			Type      string              `json:"output_type"`
			Text      cellText            `json:"text"`
			Data      map[string]cellText `json:"data"`
			Error     string              `json:"ename"`
			Value     string              `json:"evalue"`
			Traceback cellText            `json:"traceback"`
		} `json:"outputs"`
	} `json:"cells"`
}

// cellText is a string, or a list of its lines.
type cellText string

// UnmarshalJSON accepts either form and ignores any other.
func (t *cellText) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*t = cellText(strings.Join(lines, ""))
		return nil
	}
	var s string
	_ = json.Unmarshal(b, &s)
	*t = cellText(s)
	return nil
}

// notebookText returns a notebook as plain text: its cells with their outputs.
func notebookText(_ context.Context, b []byte) (string, error) {
	var nb notebook
	if err := json.Unmarshal(b, &nb); err != nil || nb.Cells == nil {
		return "", errors.New("malformed file")
	}
	var out strings.Builder
	for i, c := range nb.Cells {
		fmt.Fprintf(&out, "[%d] %s\n%s", i+1, strings.TrimSpace(c.Type+" "+c.ID), withLineEnd(string(c.Source)))
		for _, o := range c.Outputs {
			text := string(o.Text)
			for _, kind := range []string{"text/plain", "text/markdown"} {
				if text == "" {
					text = string(o.Data[kind])
				}
			}
			if o.Error != "" {
				text = o.Error + ": " + o.Value
			}
			if text == "" && len(o.Data) > 0 {
				text = "(not text)"
			}
			short, cut := patch.Truncate(text, outputLines, outputChars)
			if cut {
				short = withLineEnd(short) + "…"
			}
			fmt.Fprintf(&out, "[%d] output\n%s", i+1, withLineEnd(short))
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}

// withLineEnd returns text with a line end.
func withLineEnd(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
