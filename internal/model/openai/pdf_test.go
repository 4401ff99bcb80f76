package openai

import (
	"strings"
	"testing"

	"coder/internal/core/chat"
)

// This wire has no form for PDFs that more than one vendor takes.
func TestAPDFIsNotSentHere(t *testing.T) {
	body := string(appendParts(nil, chat.Message{Role: chat.User, Parts: []chat.Part{chat.Image{MediaType: chat.PDF, Data: []byte("x")}}}))
	if !strings.Contains(body, "a PDF was here") || strings.Contains(body, "image_url") {
		t.Error(body)
	}
}
