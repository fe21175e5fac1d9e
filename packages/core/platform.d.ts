/**
 * All that core may know of the platform it runs on, so that a Node or browser global slipping in
 * is a compile error. Users' own libraries (DOM or Node types) bring the real declaration.
 */
interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
