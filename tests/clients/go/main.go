// A script of ordinary work with nats.go. Prints one line per result; the test compares them.
//
//	clientscript nats://127.0.0.1:4222
//
// After the line "ready to reconnect" it waits for the server to be restarted on the same port.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const patience = 5 * time.Second

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	url := os.Args[1]
	reconnected := make(chan struct{}, 1)
	client := must(nats.Connect(url,
		nats.ReconnectWait(100*time.Millisecond),
		nats.MaxReconnects(200),
		nats.ReconnectHandler(func(*nats.Conn) { reconnected <- struct{}{} }),
	))
	defer client.Close()

	publishAndSubscribe(client)
	queueGroup(client)
	headers(client)
	requests(client)
	drain(url, client)
	reconnect(client, reconnected)
}

func publishAndSubscribe(client *nats.Conn) {
	words := must(client.SubscribeSync("go.words.*"))
	check(words.AutoUnsubscribe(3))
	for _, word := range []string{"one", "two", "three", "four"} {
		check(client.Publish("go.words."+word, []byte(strings.ToUpper(word))))
	}
	for range 3 {
		message := must(words.NextMsg(patience))
		fmt.Println("message", message.Subject, string(message.Data))
	}
	_, err := words.NextMsg(patience)
	fmt.Println("after the maximum", errors.Is(err, nats.ErrMaxMessages))
}

func queueGroup(client *nats.Conn) {
	var counts [2]atomic.Int32
	for member := range counts {
		must(client.QueueSubscribe("go.work", "workers", func(*nats.Msg) { counts[member].Add(1) }))
	}
	for range 100 {
		check(client.Publish("go.work", nil))
	}
	check(client.Flush())
	deadline := time.Now().Add(patience)
	for counts[0].Load()+counts[1].Load() < 100 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	one, other := counts[0].Load(), counts[1].Load()
	fmt.Println("queue total", one+other, "shared", one > 0 && other > 0)
}

func headers(client *nats.Conn) {
	labelled := must(client.SubscribeSync("go.headers"))
	message := nats.NewMsg("go.headers")
	message.Data = []byte("labelled")
	message.Header.Add("Colour", "green")
	message.Header.Add("Colour", "blue")
	check(client.PublishMsg(message))
	received := must(labelled.NextMsg(patience))
	fmt.Println("headers", string(received.Data), strings.Join(received.Header.Values("Colour"), ","))
}

func requests(client *nats.Conn) {
	must(client.Subscribe("go.upper", func(request *nats.Msg) {
		check(request.Respond([]byte(strings.ToUpper(string(request.Data)))))
	}))
	answer := must(client.Request("go.upper", []byte("hello"), patience))
	fmt.Println("request", string(answer.Data))

	_, err := client.Request("go.nobody", nil, 30*time.Second)
	fmt.Println("no responders", errors.Is(err, nats.ErrNoResponders))
}

func drain(url string, client *nats.Conn) {
	closed := make(chan struct{})
	receiver := must(nats.Connect(url, nats.ClosedHandler(func(*nats.Conn) { close(closed) })))
	var received atomic.Int32
	must(receiver.Subscribe("go.drain", func(*nats.Msg) {
		time.Sleep(time.Millisecond)
		received.Add(1)
	}))
	check(receiver.Flush())
	for range 50 {
		check(client.Publish("go.drain", nil))
	}
	check(client.Flush())
	check(receiver.Drain())
	select {
	case <-closed:
	case <-time.After(patience):
	}
	fmt.Println("drain", received.Load(), receiver.IsClosed())
}

func reconnect(client *nats.Conn, reconnected <-chan struct{}) {
	after := must(client.SubscribeSync("go.after"))
	check(client.Flush())
	fmt.Println("ready to reconnect")
	select {
	case <-reconnected:
	case <-time.After(30 * time.Second):
		log.Fatal("not reconnected")
	}
	check(client.Publish("go.after", []byte("hello again")))
	fmt.Println("reconnect", string(must(after.NextMsg(patience)).Data))
}
