package gemini

import (
	"strings"
	"testing"

	"coder/internal/core/chat"
)

func TestAPDFIsADocument(t *testing.T) {
	body, _ := talk(t, head{Model: "m"}).Body([]chat.Message{{Role: chat.User, Parts: []chat.Part{chat.Image{MediaType: chat.PDF, Data: []byte("x")}}}})
	if want := `{"inlineData":{"mimeType":"application/pdf","data":"eA=="}}`; !strings.Contains(body, want) {
		t.Errorf("%s\nlacks %s", body, want)
	}
}
