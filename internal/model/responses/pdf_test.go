package responses

import (
	"strings"
	"testing"

	"coder/internal/core/chat"
)

func TestAPDFIsADocument(t *testing.T) {
	body, _ := talk(t, head{Model: "m"}).Body([]chat.Message{{Role: chat.User, Parts: []chat.Part{chat.Image{MediaType: chat.PDF, Data: []byte("x")}}}})
	if want := `{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,eA=="}`; !strings.Contains(body, want) {
		t.Errorf("%s\nlacks %s", body, want)
	}
}
