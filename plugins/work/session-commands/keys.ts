/** Keys of the terminal view of a session, with their effects. */
export const KEYS: readonly (readonly [key: string, does: string])[] = [
  ['Enter', 'send the typed text; while a turn runs, it is queued'],
  ['Alt-Enter, Ctrl-J', 'begin another line; so does Enter behind a backslash'],
  ['Tab', 'complete @file and /command'],
  ['Ctrl-G', 'write the prompt in $VISUAL or $EDITOR'],
  ['Ctrl-O', 'show all of the last tool call; again: the one before'],
  ['Escape', 'cancel the running turn'],
  ['Ctrl-C', 'cancel the turn; pressed again, or without one, leave'],
  ['Ctrl-D', 'leave; the session goes on'],
  ['y a n v', 'answer a question: once, for this session, no, never'],
  ['i', 'answer no, and type what to do instead'],
  ['s', 'show a truncated question in full'],
  ['1 to 9', 'answer a question with choices'],
]

/** Slash commands of the input line. */
export const SLASH: readonly (readonly [command: string, does: string])[] = [
  ['/help', 'show this, and the commands of the agent'],
  ['/cancel', 'cancel the running turn'],
  ['/steer text', 'send text to the running turn with its next tool result'],
  ['/queue', 'list the prompts that wait; /queue drop 2 removes one'],
  ['/output', 'show all of the last tool call'],
  ['/model [name]', 'show the model, or change it'],
  ['/mode [name]', 'show permission mode and modes of the agent, or set one'],
  ['/answer text', 'answer the question of the agent: a number, or text'],
  ['/goal text', 'work towards a goal; also pause, resume, clear'],
  ['/quit', 'leave; the session goes on'],
]
