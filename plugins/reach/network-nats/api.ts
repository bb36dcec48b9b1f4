import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event } from '../../../kernel/plugin.js'

/** Something received from or meant for other daemons was refused. At most one event a minute per daemon and reason. */
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
    message: 'this is not a public key of a daemon',
    next: 'copy what svc network identity shows on the other daemon',
  },
  remote_fingerprint_mismatch: {
    status: 400,
    message: 'the key has another fingerprint',
    next: 'compare with what svc network identity shows on the other daemon',
  },
  remote_peer_exists: { status: 409, message: 'the name or the key belongs to another peer', next: listed },
  remote_peer_not_found: { status: 404, message: 'no such daemon', next: command('network peer keys') },
  remote_channel_taken: {
    status: 409,
    message: 'a channel of this name is shared for another workspace',
    next: listed,
  },
  remote_channel_not_found: {
    status: 404,
    message: 'the channel is not shared',
    next: command('network shared list'),
  },
  remote_off: {
    status: 409,
    message: 'this daemon is not connected to other daemons',
    next: command('network join', placeholder('url'), '--realm', placeholder('realm')),
  },
  remote_offer_exists: { status: 409, message: 'the task is already offered', next: command('network offers') },
  remote_offer_not_found: { status: 404, message: 'the task is not offered', next: command('network offers') },
  remote_offer_conflict: {
    status: 409,
    message: 'the state of the offer does not allow this',
    next: command('network offers'),
  },
  remote_offer_invalid: {
    status: 422,
    message: 'the offer is not valid',
    next: command('network offer', '--help'),
  },
})
