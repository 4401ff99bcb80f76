package files

import (
	"bytes"
	"fmt"
	"io"

	"coder/internal/core/chat"
	"coder/internal/tool"
)

// maxImage is how many bytes a picture may have that is shown to the model.
const maxImage = 5 << 20

// picture is the media type of a file that begins so, "" if it is no picture
// that models take.
func picture(head []byte) string {
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

// image hands the picture to a model that sees, and tells any other what it is.
func (s *source) image(mediaType string, vision bool) (tool.Result, error) {
	what := fmt.Sprintf("%s is a picture (%s, %d bytes)", s.name, mediaType, s.size)
	switch {
	case !vision:
		return tool.Result{}, fmt.Errorf("%s; this model cannot be shown pictures", what)
	case s.size > maxImage:
		return tool.Result{}, fmt.Errorf("%s; at most %d bytes can be shown", what, maxImage)
	}
	data, err := io.ReadAll(io.NewSectionReader(s.file, 0, s.size))
	if err != nil {
		return tool.Result{}, fmt.Errorf("read %s: %w", s.name, err)
	}
	return tool.Result{
		Value:   imageResult{OK: true, Path: s.name, MediaType: mediaType, Size: len(data), Note: "the picture follows"},
		Images:  []chat.Image{{MediaType: mediaType, Data: data}},
		Summary: fmt.Sprintf("%s, %d bytes", mediaType, len(data)),
	}, nil
}
