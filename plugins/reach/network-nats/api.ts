import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event } from '../../../kernel/plugin.js'

/** Something that another daemon sent, or that was to be sent to others, is refused. At most one a minute for each daemon and reason. */
export const RemoteRefused = event(
  'network.remote.refused',
  v.object({
    peer: v.string(),
    channel: v.string(),
    reason_code: v.string(),
    message: v.string(),
  }),
)

const listed = 'svc network remote'
export const RemoteErrors = defineErrors({
  remote_key_invalid: {
    status: 400,
    message: 'this is no public key of a daemon',
    next: 'copy what svc network identity shows on the other daemon',
  },
  remote_fingerprint_mismatch: {
    status: 400,
    message: 'the key has another fingerprint',
    next: 'compare with what svc network identity shows on the other daemon',
  },
  remote_peer_exists: { status: 409, message: 'the name or the key belongs to another peer', next: listed },
  remote_peer_not_found: { status: 404, message: 'no such daemon', next: listed },
  remote_channel_taken: {
    status: 409,
    message: 'a channel of this name is shared for another workspace',
    next: listed,
  },
  remote_channel_not_found: {
    status: 404,
    message: 'the channel is not shared',
    next: command('network channels list'),
  },
})
