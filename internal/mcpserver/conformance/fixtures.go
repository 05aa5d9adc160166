package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stepPause lets a client see notifications one by one.
const stepPause = 50 * time.Millisecond

type handler = func(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error)

func say(format string, a ...any) []mcp.Content {
	return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, a...)}}
}

// fixed is a tool that always answers the same.
func fixed(c ...mcp.Content) handler {
	return func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return c, nil }
}

func addTools(s *mcp.Server) {
	none := `{"type":"object","properties":{}}`
	for _, t := range []struct {
		name, schema string
		do           handler
	}{
		{"test_simple_text", none, fixed(say("This is a simple text response for testing.")...)},
		{"test_image_content", none, fixed(&mcp.ImageContent{Data: onePixel(), MIMEType: "image/png"})},
		{"test_audio_content", none, fixed(&mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"})},
		{"test_embedded_resource", none, fixed(embedded("test://embedded-resource", "This is an embedded resource content."))},
		{"test_multiple_content_types", none, fixed(say("Multiple content types test:")[0],
			&mcp.ImageContent{Data: onePixel(), MIMEType: "image/png"}, embedded("test://mixed-content-resource", `{"test":"data"}`))},
		{"test_tool_with_logging", none, logThrice},
		{"test_tool_with_progress", none, threeSteps},
		{"test_error_handling", none, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
			//lint:ignore ST1005 the suite's own text
			return nil, errors.New("This tool intentionally returns an error for testing")
		}},
		{"test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, sample},
		{"test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, elicitUser},
		{"test_elicitation_sep1034_defaults", none, elicit("Values with defaults", defaultsForm)},
		{"test_elicitation_sep1330_enums", none, elicit("Choices of every kind", choicesForm)},
		{"json_schema_2020_12_tool", modernSchema, fixed(say("ok")...)},
		{"test_reconnection", none, reconnect},
	} {
		s.AddTool(&mcp.Tool{Name: t.name, Description: "Fixture " + t.name, InputSchema: json.RawMessage(t.schema)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				content, err := t.do(ctx, req)
				if err != nil {
					return &mcp.CallToolResult{IsError: true, Content: say("%v", err)}, nil
				}
				return &mcp.CallToolResult{Content: content}, nil
			})
	}
}

func argument(req *mcp.CallToolRequest, name string) string {
	var a map[string]string
	if json.Unmarshal(req.Params.Arguments, &a) != nil {
		return ""
	}
	return a[name]
}

func logThrice(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
	for _, line := range []string{"started", "processing", "completed"} {
		//lint:ignore SA1019 the suite tests the deprecated part of the protocol too
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "Tool " + line}); err != nil {
			return nil, err
		}
		time.Sleep(stepPause)
	}
	return say("logged"), nil
}

func threeSteps(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
	token := req.Params.GetProgressToken()
	for _, at := range []float64{0, 50, 100} {
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: at, Total: 100}); err != nil {
			return nil, err
		}
		time.Sleep(stepPause)
	}
	return say("%v", token), nil
}

func sample(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
	//lint:ignore SA1019 the suite tests the deprecated part of the protocol too
	res, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
		MaxTokens: 100,
		//lint:ignore SA1019 as above
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: argument(req, "prompt")}}},
	})
	if err != nil {
		return nil, err
	}
	if t, ok := res.Content.(*mcp.TextContent); ok {
		return say("LLM response: %s", t.Text), nil
	}
	return say("LLM response without text"), nil
}

func elicitUser(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
	return elicit(argument(req, "message"), `{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)(ctx, req)
}

func elicit(message, form string) handler {
	return func(ctx context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(form)})
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(res.Content)
		if err != nil {
			return nil, err
		}
		return say("Elicitation completed: action=%s, content=%s", res.Action, content), nil
	}
}

// reconnect drops the client's stream in the middle of the call; the client
// comes back for the answer.
func reconnect(_ context.Context, req *mcp.CallToolRequest) ([]mcp.Content, error) {
	if req.Extra != nil && req.Extra.CloseSSEStream != nil {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
	}
	time.Sleep(2 * stepPause)
	return say("answered after the stream was closed"), nil
}

const defaultsForm = `{"type":"object","properties":{
	"name":{"type":"string","default":"John Doe"},
	"age":{"type":"integer","default":30},
	"score":{"type":"number","default":95.5},
	"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
	"verified":{"type":"boolean","default":true}}}`

const choicesForm = `{"type":"object","properties":{
	"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},
	"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
	"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
	"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}}}`

const modernSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`

func embedded(uri, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}

func addResources(s *mcp.Server) {
	for uri, c := range map[string]mcp.ResourceContents{
		"test://static-text":      {MIMEType: "text/plain", Text: "This is the content of the static text resource."},
		"test://static-binary":    {MIMEType: "image/png", Blob: onePixel()},
		"test://watched-resource": {MIMEType: "text/plain", Text: "watched"},
	} {
		s.AddResource(&mcp.Resource{URI: uri, Name: strings.TrimPrefix(uri, "test://"), Description: "Fixture", MIMEType: c.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				one := c
				one.URI = uri
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&one}}, nil
			})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "Fixture", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			data, err := json.Marshal(map[string]any{"id": id, "templateTest": true})
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: string(data)}}}, nil
		})
}

func addPrompts(s *mcp.Server) {
	user := func(c ...mcp.Content) *mcp.GetPromptResult {
		res := &mcp.GetPromptResult{Description: "Fixture"}
		for _, one := range c {
			res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: one})
		}
		return res
	}
	add := func(name string, args []string, do func(map[string]string) *mcp.GetPromptResult) {
		p := &mcp.Prompt{Name: name, Description: "Fixture " + name}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: "Argument " + a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return do(req.Params.Arguments), nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) *mcp.GetPromptResult {
		return user(say("This is a simple prompt for testing.")[0])
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) *mcp.GetPromptResult {
		return user(say("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])[0])
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) *mcp.GetPromptResult {
		return user(embedded(a["resourceUri"], "Embedded resource content for testing."), say("Please process the embedded resource above.")[0])
	})
	add("test_prompt_with_image", nil, func(map[string]string) *mcp.GetPromptResult {
		return user(&mcp.ImageContent{Data: onePixel(), MIMEType: "image/png"}, say("Please analyze the image above.")[0])
	})
}

// onePixel is the smallest picture.
func onePixel() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic("encode fixture: " + err.Error()) // a buffer takes everything
	}
	return b.Bytes()
}

// silence is a WAV file with no samples.
func silence() []byte {
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{uint32(36), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8), []byte("data"), uint32(0)} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic("encode fixture: " + err.Error()) // sizes are fixed
		}
	}
	return b.Bytes()
}
