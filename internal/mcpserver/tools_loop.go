package mcpserver

import (
	"errors"
	"fmt"
)

// LoopService is how a session that the loop started speaks to the loop.
type LoopService interface {
	// Ask asks for a person; with broken it says instead that something is wrong which
	// the session cannot mend. The session is stopped, and gone on with when a person
	// has answered.
	Ask(text string, broken bool) error
	// Progress says how far the work on its item is.
	Progress(done, total int, step string) error
}

// loopTools are offered in a session that the loop started, and nowhere else.
func loopTools() []tool {
	return []tool{
		{
			name: "loop_ask", title: "Ask a person", toolset: ToolsetLoop, more: true,
			about: "Ask a person what only a person can decide: what you need to know, which choices you see, which you would take. Your work is kept; end your turn after it. " +
				"You go on with the answer, in this session where the client can do that. Ask only for what you cannot find out.",
			params: []param{
				{name: "question", kind: text, required: true, bytes: 8_000, lines: true, about: "What a person should decide.", remedy: "give one to ten sentences"},
				{name: "broken", kind: boolean, about: "It is no question: something is broken that you cannot mend.", remedy: "leave it out for a question"},
			},
			do: (*Server).loopAsk,
		},
		{
			name: "loop_progress", title: "Say how far you are", toolset: ToolsetLoop, more: true, repeatable: true,
			about: "Say how far the work on your item is, when that changes: who looks at the loop sees it. Nothing is decided by it.",
			params: []param{
				{name: "steps_completed", kind: integer, required: true, min: 0, max: 10_000, about: "Steps that are done.", remedy: "give a whole number"},
				{name: "steps_total", kind: integer, required: true, min: 0, max: 10_000, about: "Steps that there are in all, as you see it now.", remedy: "give a whole number"},
				{name: "current_step", kind: text, bytes: 200, about: "What you are at.", remedy: "give a few words, or leave it out"},
			},
			do: (*Server).loopProgress,
		},
	}
}

func (s *Server) loop() (LoopService, error) {
	if s.deps.Loop == nil {
		return nil, errors.New("this session was not started by the loop, so there is nobody to tell")
	}
	return s.deps.Loop, nil
}

func (s *Server) loopAsk(c *call) (any, error) {
	l, err := s.loop()
	if err != nil {
		return nil, err
	}
	if err := l.Ask(c.args.text("question"), c.args.flag("broken")); err != nil {
		return nil, fmt.Errorf("loop_ask: %w", err)
	}
	return map[string]any{"asked": true, "next": "end your turn now; you go on when a person has answered"}, nil
}

func (s *Server) loopProgress(c *call) (any, error) {
	l, err := s.loop()
	if err != nil {
		return nil, err
	}
	done, total := c.args.number("steps_completed", 0), c.args.number("steps_total", 0)
	if err := l.Progress(done, total, c.args.text("current_step")); err != nil {
		return nil, fmt.Errorf("loop_progress: %w", err)
	}
	return map[string]any{"noted": true}, nil
}
