/** `svc/plugins/console`: errors of the console. */
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const ConsoleErrors = defineErrors({
  console_operator_required: {
    status: 403,
    message: 'links to the console are made by the operator only',
    next: command('open'),
  },
  console_unreachable: {
    status: 409,
    message: 'a browser cannot reach the daemon, which serves no TCP',
    next: command('config set', 'http.enabled', 'true'),
  },
  console_not_built: {
    status: 503,
    message: 'the files of the console are missing in this installation',
    next: 'reinstall svc, or build it with `npm run build`',
  },
  console_link_invalid: {
    status: 401,
    message: 'this link was used already, or is older than five minutes',
    next: `make another one: ${command('open')}`,
  },
  console_session_ended: {
    status: 401,
    message: 'this session of the console has ended',
    next: `open it again: ${command('open')}`,
  },
  console_session_not_found: {
    status: 404,
    message: 'no such session of the console',
    next: 'GET /api/console/sessions lists them',
  },
  console_session_required: {
    status: 403,
    message: 'only a browser with a session of the console subscribes to push',
    next: command('open'),
  },
  console_push_off: {
    status: 409,
    message: 'push is off, and nothing is sent to push services',
    next: command('config set', 'console.push.enabled', 'true'),
  },
  console_push_refused: {
    status: 400,
    message: 'the address of the subscription is not that of a push service',
    next: 'subscribe in a browser: the console does it',
  },
  console_push_full: {
    status: 409,
    message: 'too many browsers have subscribed to push',
    next: 'GET /api/console/push lists them; delete one, or sign out there',
  },
  console_push_not_found: {
    status: 404,
    message: 'no such subscription',
    next: 'GET /api/console/push lists them',
  },
  console_file_not_found: { status: 404, message: 'the console has no such file', next: command('open') },
})
