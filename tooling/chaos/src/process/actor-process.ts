import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fakeTime } from "../faults/fake-time.ts";
import type { ActorTraits, Message, Verb, Verbs } from "./protocol.ts";

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

export interface ActorOptions extends Partial<ActorTraits> {
  readonly name: string;
  readonly script: string;
  /** Whatever it printed, warnings for one. */
  readonly onComplaint: (text: string) => void;
  /** It ended though nobody asked for it. */
  readonly onExit: (text: string) => void;
}

const quitMs = 10_000;
/** Far more than anything takes that is asked for: whoever does not answer hangs. */
const answerMs = 180_000;

/** A producer or worker process, as the harness sees it. */
export class ActorProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #calls = 0;
  #output = "";
  #mayEnd = false;

  constructor({ name, script, onComplaint, onExit, clockSkewMs = 0 }: ActorOptions) {
    this.name = name;
    const faked = fakeTime(clockSkewMs);
    const traits: ActorTraits = { clockSkewMs: faked ? 0 : clockSkewMs };
    this.#child = fork(script, [JSON.stringify(traits)], {
      execArgv: ["--trace-warnings", "--unhandled-rejections=strict", "--expose-gc"],
      env: { ...process.env, NODE_OPTIONS: "", NODE_V8_COVERAGE: undefined, ...faked },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-4_000);
      });
    this.#child.on("message", (message: Message) => this.#receive(message));
    // A process that is killed may have had a message on its way to it.
    this.#child.on("error", () => undefined);
    this.#ended = this.#end(onComplaint, onExit);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Asks for something; rejects when the process fails at it or ends. */
  call<V extends Verb>(
    verb: V,
    ...[argument]: Parameters<Verbs[V]>
  ): Promise<Awaited<ReturnType<Verbs[V]>>> {
    this.#calls += 1;
    const call = this.#calls;
    const late = setTimeout(() => {
      this.#receive({ call, error: `${verb} was not answered within ${answerMs / 1_000} s` });
    }, answerMs);
    const answer = new Promise<Awaited<ReturnType<Verbs[V]>>>((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#child.send({ call, verb, argument }, (error) => {
        if (error) this.#receive({ call, error: error.message });
      });
    });
    return answer.finally(() => clearTimeout(late));
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** As the kernel does when memory is short. */
  async kill(): Promise<void> {
    this.#mayEnd = true;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Lets it end by itself. */
  async quit(): Promise<void> {
    this.#mayEnd = true;
    if (!this.isAlive) return this.#ended;
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), quitMs);
    if (this.#child.connected) this.#child.disconnect();
    await this.#ended;
    clearTimeout(timer);
  }

  /** Not by its close event, which does not come when the channel was closed from this side. */
  async #end(
    onComplaint: ActorOptions["onComplaint"],
    onExit: ActorOptions["onExit"],
  ): Promise<void> {
    const { stdout, stderr } = this.#child;
    const read = [stdout, stderr].flatMap((stream) => (stream ? [once(stream, "close")] : []));
    const [code, signal] = await once(this.#child, "exit");
    await Promise.all(read);
    if (!this.#mayEnd) onExit(`${this.name} ended with ${signal ?? code}: ${this.#output}`);
    else if (this.#output !== "") onComplaint(`${this.name} printed ${this.#output}`);
    for (const { reject } of this.#waiting.values()) reject(new Error(`${this.name} has ended`));
    this.#waiting.clear();
  }

  #receive(message: Message): void {
    const waiting = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    if ("error" in message) waiting?.reject(new Error(`${this.name}: ${message.error}`));
    else waiting?.resolve(message.result as never);
  }
}
