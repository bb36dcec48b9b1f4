import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const AcpErrors = defineErrors({
  permission_not_found: {
    status: 404,
    message: 'no such pending permission request; it may be answered already',
    next: command('session interactions', placeholder('id')),
  },
  permission_not_offered: {
    status: 400,
    message: 'the agent offers no option of that kind for this request',
    next: 'choose a decision that its options allow: svc session history <id> shows them',
  },
  clarification_not_found: {
    status: 404,
    message: 'no such question waits in this session',
    next: command('session clarify', placeholder('id')),
  },
  clarification_answered: { status: 409, message: 'this question is already answered or has expired' },
  clarification_idle: {
    status: 409,
    message: 'no turn of this session is running, so a question cannot be shown',
    next: command('session prompt', placeholder('id'), placeholder('text')),
  },
  clarification_crowded: {
    status: 409,
    message: 'too many questions wait in this session',
    next: command('session clarify', placeholder('id')),
  },
  clarification_invalid: {
    status: 400,
    message: 'this is not a valid answer to the question',
    next: command('session clarify', placeholder('id')),
  },
})
